-- Processes hear from each other twice a second that they are alive, and read what another one announces only when it differs.
--
-- Needs: 0010_processes
-- Older processes: can run beside it

alter table refold.processes
  -- stored, so that nobody reads or hashes hundreds of unit names to see that they are the same
  add column announcement_hash bigint not null generated always as (
    hash_array_extended(
      declares,
      hash_array_extended(
        owns,
        hash_array_extended(keeps, jsonb_hash_extended(payload_versions, jsonb_hash_extended(reactor_versions, 0)))
      )
    )
  ) stored;

comment on column refold.processes.announcement_hash is 'Differs whenever the process announces something else.';
