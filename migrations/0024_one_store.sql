-- A version is in one read store: it moves to another one as the next version.
--
-- Needs: 0013_copies
-- breaking
-- Older processes read the columns.

alter table refold.projections
  drop column arriving_from,
  drop column moved_to;
