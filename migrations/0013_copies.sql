-- Versions that move from one read store to another: for a time, each of both stores has a copy of the version.
--
-- Needs: 0003_registry
-- Older processes: can run beside it

alter table refold.projections
  -- this copy is being built, and does not answer yet: the store of the copy that answers
  add column arriving_from text,
  -- this copy was retired after the version had moved: the store that has it now
  add column moved_to text;

comment on column refold.projections.arriving_from is
  'The read store from which the version moves here; null unless this copy is still being built.';
comment on column refold.projections.moved_to is 'The read store to which the version has moved; null unless this copy was retired for that.';
