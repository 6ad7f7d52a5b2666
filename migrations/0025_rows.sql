-- How many events `onError: 'skip'` has left out of the table, so that every process tells the same.
alter table refold.processors add column events_skipped bigint not null default 0;
alter table refold.rebuilds add column events_skipped bigint not null default 0;
