-- The payload versions that each process can read. A process that can't read an event leaves it to one that can.
--
-- Needs: 0010_processes
-- Older processes: can run beside it

-- family → type → version; only types above version 1. Processes of older releases announce none, and count as knowing version 1 of every type.
alter table refold.processes add column payload_versions jsonb not null default '{}';
