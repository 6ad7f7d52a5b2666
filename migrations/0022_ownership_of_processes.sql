-- A process says how it agrees with others on who maintains what, so that none with another way starts beside
-- it and takes the same work.
--
-- Needs: 0010_processes
-- Older processes: can run beside it

-- They say nothing, and are not compared.

alter table refold.processes
  add column ownership text,
  add column maintains text[] not null default '{}';

comment on column refold.processes.ownership is 'Its runtime.ownership: advisory, lease or memory. Null if it maintains nothing.';
comment on column refold.processes.maintains is 'The versions and reactors that it maintains, such as cart_summary@2.';
