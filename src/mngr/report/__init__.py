"""Pages to look at: what a run left behind, as files that open from disk or as a live site on this machine.

A `Source` knows the data of its pages; `site` writes them to disk and `server` answers with them while they change.
"""
