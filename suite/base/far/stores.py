"""The services behind addresses: obstore for s3://, gs:// and https://, huggingface_hub for hf://."""

import functools
from typing import Any
from urllib.parse import unquote

TIMEOUT_S = 30.0  # of silence; ten times of it for one request


def head(address: str) -> tuple[int, str]:
    """The size and version of a file."""
    if address.startswith("hf://"):
        info = _hugging_face().info(_pinned(address))
        return info["size"], str(info.get("xet_hash") or info["blob_id"])
    store, path = locate(address)
    return _describe(store.head(path))


def get(address: str, start: int, stop: int) -> tuple[bytes, tuple[int, str] | None]:
    """A part of a file, and the size and version of the file that it is of; None where these cannot change."""
    if address.startswith("hf://"):
        found, data = None, _hugging_face().cat_file(_pinned(address), start, stop, cache_type="none")
    else:
        store, path = locate(address)
        answer = store.get(path, options={"range": (start, stop)})  # which refuses an answer of another range
        found, data = _describe(answer.meta), bytes(answer.bytes())
    if len(data) != stop - start and found is None:
        raise OSError(f"asked for {stop - start:,} bytes, got {len(data):,}")
    return data, found


def list_names(address: str) -> list[str]:
    """The addresses of what lies in a folder, or below it; / is behind those of folders."""
    scheme = address.partition("://")[0]
    if scheme in ("s3", "gs"):
        store, path = locate(address)
        found, root = store.list_with_delimiter(path), address.removesuffix(path)
        names = [one["path"] for one in found["objects"]] + [f"{one}/" for one in found["common_prefixes"]]
        return [f"{root}{name}" for name in names]
    if scheme == "hf":
        return [f"hf://{one['name']}{'/' * (one['type'] != 'file')}" for one in _hugging_face().ls(address)]
    import fsspec

    return [str(one) for one in fsspec.filesystem(scheme).ls(address, detail=False)]


def _describe(meta: Any) -> tuple[int, str]:
    return meta["size"], meta["e_tag"] or meta["last_modified"].isoformat()


def locate(address: str) -> tuple[Any, str]:
    """The store that an address names, and the path in it."""
    scheme, _, rest = address.partition("://")
    place, _, path = rest.partition("/")
    return _open_store(f"{scheme}://{place}"), unquote(path) if scheme.startswith("http") else path


@functools.cache
def _open_store(root: str) -> Any:
    from obstore.store import from_url

    limits: Any = dict.fromkeys(("read_timeout", "connect_timeout"), f"{TIMEOUT_S}s")
    limits |= {"timeout": f"{10 * TIMEOUT_S}s", "allow_http": True}
    return from_url(root, client_options=limits, retry_config={"max_retries": 0})  # ``remote`` tries again


@functools.cache
def _hugging_face() -> Any:
    from huggingface_hub import HfFileSystem

    return HfFileSystem()


@functools.cache
def _find_commit(repo_type: str, repo_id: str, revision: str) -> str:
    from huggingface_hub import HfApi

    return str(HfApi(_hugging_face().endpoint).repo_info(repo_id, repo_type=repo_type, revision=revision).sha)


def _pinned(address: str) -> str:
    """An hf:// address with the commit that its branch is at: what is read by it never changes."""
    found = _hugging_face().resolve_path(address)
    commit = _find_commit(found.repo_type, found.repo_id, found.revision)
    return f"hf://{found.repo_type}s/{found.repo_id}@{commit}/{found.path_in_repo}"
