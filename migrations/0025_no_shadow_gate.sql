-- A version no longer waits for compared live queries.
--
-- Needs: 0011_evolution
-- breaking
-- Older processes count the comparisons of each minute.

drop table refold.shadow_counts;
alter table refold.shadows
  drop constraint shadows_gate_is_whole,
  drop column needed_queries,
  drop column max_different,
  drop column within_seconds;
