"""Events, sent and received. It imports oauth and library_site; books register their kinds and handlers."""
