-- A process says with which code it folds, so that no other code changes the same rows beside it.
--
-- Needs: 0010_processes
-- Older processes: can run beside it

-- They say nothing, and are not compared.

alter table refold.processes
  add column code jsonb not null default '{}';

comment on column refold.processes.code is 'The versions that it folds, such as cart_summary@2, each with a hash of the code that does it.';
