"""Who cites the suite or a paper finds the same in BibTeX and in CITATION.cff."""

import re
from pathlib import Path

import yaml

from suite.export.__main__ import main
from suite.papers import list_papers

CITATION = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())


def test_the_command_writes_an_entry_of_the_suite_and_one_of_each_paper(tmp_path):
    assert main(["--bibtex", str(tmp_path / "cite.bib")]) == 0
    text = (tmp_path / "cite.bib").read_text()
    assert text.count("{") == text.count("}")
    assert len(set(re.findall(r"^@\w+{(\w+),", text, re.MULTILINE))) == 1 + len(list_papers())
    assert CITATION["title"] in text
    assert CITATION["authors"][0]["name"] in text


def test_citation_cff_names_each_paper_as_its_bibtex_does():
    for paper, reference in zip(list_papers(), CITATION["references"], strict=True):
        authors = " and ".join(f"{author['family-names']}, {author['given-names']}" for author in reference["authors"])
        told = " ".join(paper.citation.split())
        for found in (f"title={{{reference['title']}}}", f"author={{{authors}}}", f"year={{{reference['year']}}}"):
            assert found in told
        assert reference["url"].rpartition("/")[2] in told
