-- What operators may read, described for `\d+` in psql and for docs/sql.md, which is generated from these comments.
--
-- Needs: nothing
-- Older processes: can run beside it

comment on view refold.lag is
  'How far each processor is behind the log: one row for each partition of a version that is not retired.';
comment on column refold.lag.name is 'The read model, such as cart_summary.';
comment on column refold.lag.version is 'The version of the read model.';
comment on column refold.lag.partition is 'The partition, from 0.';
comment on column refold.lag.state is 'The state of the version: building, ready, active or failed.';
comment on column refold.lag.checkpoint is 'The position up to which events are folded.';
comment on column refold.lag.head is 'The last position that was drawn.';
comment on column refold.lag.positions is 'Positions between the two, with gaps and with events of other types.';
comment on column refold.lag.events is
  'Events that it handles and has not folded yet. Beyond 10,000 positions, only those among the first of them.';
comment on column refold.lag.exact is 'Whether events counts all of them.';
comment on column refold.lag.seconds is 'The age of the first of them, 0 if there is none.';
comment on column refold.lag.paused is 'Whether an operator has paused the version.';
comment on column refold.lag.starts_after is 'Of a partial version: the position after which it begins.';

comment on view refold.throughput is
  'The rates of each processor over the last minute, by kind of work. A processor without work in that minute has no row.';
comment on column refold.throughput.name is 'The read model.';
comment on column refold.throughput.version is 'The version of the read model.';
comment on column refold.throughput.partition is 'The partition, from 0.';
comment on column refold.throughput.kind is 'processor, or rebuild for a table that is built beside the one that serves.';
comment on column refold.throughput.events is 'Events folded.';
comment on column refold.throughput.rows is 'Rows written.';
comment on column refold.throughput.events_per_second is 'Events folded per second.';
comment on column refold.throughput.rows_per_second is 'Rows written per second.';
comment on column refold.throughput.positions_per_second is 'Positions of the log passed per second.';
comment on column refold.throughput.busy_share is 'The share of the time in which it worked, from 0 to 1.';

comment on view refold.stalls is
  'The transactions that append now. The first one holds the horizon back: events above its tag can''t be read until it ends.';
comment on column refold.stalls.tag is 'The last position that was drawn before the transaction drew its first.';
comment on column refold.stalls.pid is 'The process id of the session; null for a prepared transaction.';
comment on column refold.stalls.application_name is 'The name that the session gave itself.';
comment on column refold.stalls.state is 'The state of the session, or prepared.';
comment on column refold.stalls.seconds is 'How long the transaction is open.';
comment on column refold.stalls.query is 'The last statement of the session; null without the right to see it.';
comment on column refold.stalls.role is 'The role of the session.';
comment on column refold.stalls.client_address is 'The address of the client; null for a local socket.';

comment on table refold.projections is 'The registry: every version that was ever declared.';
comment on column refold.projections.name is 'The read model.';
comment on column refold.projections.version is 'The version of the read model.';
comment on column refold.projections.state is 'building, ready, active, retired or failed.';
comment on column refold.projections.held_by is
  'What keeps a ready version from becoming active: operator, breaking, verification, dead-letters or partial.';
comment on column refold.projections.held_reason is 'The same in words, with the way out.';
comment on column refold.projections.paused_at is 'When an operator paused it; null if it is not paused.';
comment on column refold.projections.paused_by is 'Who paused it.';
comment on column refold.projections.paused_reason is 'Why.';
comment on column refold.projections.table_schema is 'The schema of its read table.';
comment on column refold.projections.table_name is 'Its read table. The stable view has the name of the read model.';
comment on column refold.projections.table_fingerprint is 'A hash of the declared table.';
comment on column refold.projections.code_fingerprint is 'A hash of the code that fills the table.';
comment on column refold.projections.definition is 'What the declaration says: columns, events, relations, GraphQL names.';
comment on column refold.projections.generation is 'How many tables the version has had: each rebuild adds one.';
comment on column refold.projections.declared_at is 'When a process first declared it.';
comment on column refold.projections.state_changed_at is 'When it got its state.';

comment on table refold.transitions is 'The audit log of versions: every change of a state, and every requested rebuild.';
comment on column refold.transitions.id is 'The order of the transitions.';
comment on column refold.transitions.name is 'The read model.';
comment on column refold.transitions.version is 'The version of the read model.';
comment on column refold.transitions.from_state is 'The state before; null for a new version.';
comment on column refold.transitions.to_state is 'The state after. The same as before if something else was changed.';
comment on column refold.transitions.actor is 'Who did it: a process, or a user and host.';
comment on column refold.transitions.reason is 'Why.';
comment on column refold.transitions.at is 'When.';

comment on table refold.runs is
  'The work of each processor in intervals of ten seconds, kept for seven days. An interval without work has no row.';
comment on column refold.runs.name is 'The read model.';
comment on column refold.runs.version is 'The version of the read model.';
comment on column refold.runs.partition is 'The partition, from 0.';
comment on column refold.runs.kind is 'processor, or rebuild for a table that is built beside the one that serves.';
comment on column refold.runs.started_at is 'The start of the interval.';
comment on column refold.runs.ended_at is 'The end of its last batch.';
comment on column refold.runs.from_position is 'The checkpoint at the start.';
comment on column refold.runs.to_position is 'The checkpoint at the end.';
comment on column refold.runs.batches is 'Transactions.';
comment on column refold.runs.events is 'Events folded.';
comment on column refold.runs.rows is 'Rows written.';
comment on column refold.runs.busy_ms is 'Milliseconds of work.';

comment on table refold.verifications is
  'The comparisons of rows with the log: before an activation, and repeated as an audit.';
comment on column refold.verifications.name is 'The read model.';
comment on column refold.verifications.version is 'The version of the read model.';
comment on column refold.verifications.kind is 'activation or audit.';
comment on column refold.verifications.round is 'How many have ended.';
comment on column refold.verifications.owner is 'The process that compares now.';
comment on column refold.verifications.busy_until is 'Until when that process has it, unless it renews this.';
comment on column refold.verifications.next_at is 'When the next one is due.';
comment on column refold.verifications.ended_at is 'When the last one ended.';
comment on column refold.verifications.position is 'The position at which the last one compared.';
comment on column refold.verifications.rows_compared is 'Rows that the last one compared.';
comment on column refold.verifications.differences is 'Rows of the last one that differed.';
comment on column refold.verifications.total_rows_compared is 'Rows that all of them compared.';
comment on column refold.verifications.total_differences is 'Rows of all of them that differed.';
comment on column refold.verifications.samples is 'The last rows found to differ, until the version is rebuilt.';
comment on column refold.verifications.found_at is 'When these were found.';

comment on table refold.processes is
  'The running processes. One that was killed stays for a while; its heartbeat_at is older than 15 seconds.';
comment on column refold.processes.id is 'Drawn by the process at its start.';
comment on column refold.processes.name is 'Such as web-1:4711: the host and the process id, or a chosen name.';
comment on column refold.processes.role is 'gateway, worker or all.';
comment on column refold.processes.versions is 'The versions that it declares, such as cart_summary@2.';
comment on column refold.processes.declares is 'The units of work that it could do, such as "processor cart_summary@2/0".';
comment on column refold.processes.owns is 'Those that it does.';
comment on column refold.processes.keeps is 'Those of them that it keeps at any load.';
comment on column refold.processes.started_at is 'When it started.';
comment on column refold.processes.heartbeat_at is 'When it last reported.';
comment on column refold.processes.payload_versions is 'The payload versions that it can read, by family and type, above 1.';
comment on column refold.processes.reactor_versions is 'The versions of reactors that it declares, other than 1.';

comment on table refold.events is 'The event log. Rows are never changed or removed; a trigger refuses it.';
comment on column refold.events.position is 'The place in the whole log. Rises, with gaps.';
comment on column refold.events.stream_position is 'The place in the stream: 1, 2, 3, … without gaps.';
comment on column refold.events.recorded_at is 'When it was appended, by the clock of the server.';
comment on column refold.events.id is 'The id of the event. Its last eight digits are the anchor of the position.';
comment on column refold.events.payload_version is 'The shape of the payload. Upcasters convert older ones when they are read.';
comment on column refold.events.family is 'The kind of stream, by its stored name.';
comment on column refold.events.stream_id is 'The stream within its family.';
comment on column refold.events.type is 'The type of the event, by its stored name.';
comment on column refold.events.payload is 'What happened.';
comment on column refold.events.metadata is 'Correlation, causation, actor, trace context, and keys of your own.';
