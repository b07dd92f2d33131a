"""The tail of the data's path: finished runs become tables that stand beside the paper's."""
