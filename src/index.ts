export type { Command, CommandOptions, DecideContext } from './commands/define-command.ts';
export { defineCommand } from './commands/define-command.ts';
export type { StreamState } from './commands/define-state.ts';
export { defineState } from './commands/define-state.ts';
export type { Config, ConfigOptions } from './define-config.ts';
export { defineConfig } from './define-config.ts';
export type { InputIssue, RefoldErrorCode } from './errors.ts';
export { CommandRejected, ConcurrencyConflict, InvalidInput, RefoldError } from './errors.ts';
export type { Import, ImportedAppend, ImportLine } from './events/define-import.ts';
export { defineImport } from './events/define-import.ts';
export type { EventMetadata, ExpectedVersion, NewEvent, RecordedEvent } from './events/event.ts';
export type {
  EventFamily,
  EventFamilyOptions,
  EventTypeOf,
  NewEventOf,
  PayloadOf,
  RecordedEventOf,
} from './events/event-family.ts';
export { defineEvents } from './events/event-family.ts';
export type { GlobalPosition } from './events/global-position.ts';
export { beginning, globalPosition } from './events/global-position.ts';
export type { Column, Columns, DecimalInput, KeyOf, RowInputOf, RowOf } from './projections/column.ts';
export { t } from './projections/column.ts';
export type { Decimal } from './projections/decimal.ts';
export { decimal } from './projections/decimal.ts';
export type { ProjectionOptions } from './projections/define-projection.ts';
export { defineProjection } from './projections/define-projection.ts';
export type { ActivationRule, ErrorPolicy, FoldFailure, GraphqlNames, Projection } from './projections/projection.ts';
export type { ManyRelation, OneRelation } from './projections/relations.ts';
export { many, one } from './projections/relations.ts';
export type { Refold, RefoldOptions } from './refold.ts';
export { createRefold } from './refold.ts';
export type { ExecuteOptions, ExecuteResult } from './runtime/command-handler.ts';
export type { Lifecycle, StepReason } from './runtime/lifecycle.ts';
export type { VersionStatus } from './runtime/status.ts';
export type { AppendRequest, AppendResult, AppendToStreamsRequest, EventLog } from './store/event-log.ts';
