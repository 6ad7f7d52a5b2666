-- Processes hear from each other twice a second that they are alive, and read what another one announces only when it differs.
--
-- Needs: 0010_processes, 0013_copies
-- Older processes: can run beside it

alter table refold.processes
  -- stored, so that nobody reads or hashes hundreds of unit names to see that they are the same
  add column announcement_hash bigint not null generated always as (
    hash_array_extended(
      array[
        hash_array_extended(declares, 0),
        hash_array_extended(owns, 0),
        hash_array_extended(keeps, 0),
        jsonb_hash_extended(payload_versions, 0),
        jsonb_hash_extended(reactor_versions, 0)
      ],
      0
    )
  ) stored;

comment on column refold.processes.announcement_hash is 'Differs whenever the process announces something else.';

-- It was said to be null unless the copy is retired.
comment on column refold.projections.moved_to is 'The read store to which the version has moved from here, unless it came back.';
