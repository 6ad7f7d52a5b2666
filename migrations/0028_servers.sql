-- Every append looks up the live inline versions, also where sequential scans are switched off: without an index the planner would count the one
-- page as ten thousand million, and a server that compiles expensive statements (jit) would compile this one every time.
create index inline_versions_live on refold.inline_versions (lock_key) where status = 'live';
