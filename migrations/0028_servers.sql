-- Every append looks up the live inline versions, also where sequential scans are switched off: without an index the planner would count the one
-- page as ten thousand million, and a server that compiles expensive statements (jit) would compile this one every time.
create index inline_versions_live on refold.inline_versions (lock_key) where status = 'live';

-- Outcomes of reactors' steps are forgotten after some time. A rewind to before that would run those steps again, and is refused.
alter table refold.reactors add column steps_kept_since timestamptz;
create index append_keys_of_steps on refold.append_keys (recorded_at)
where not coalesce(result ? 'input', false) and key like '%:%/________-____-____-____-____________/%';
