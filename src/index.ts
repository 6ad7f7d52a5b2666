export type {
  Access,
  AccessRules,
  Authenticator,
  CommandAccess,
  Credentials,
  RowCondition,
  Viewer,
} from './access.ts';
export { anonymous, tenant } from './access.ts';
export type { Command, CommandOptions, DecideContext } from './commands/define-command.ts';
export { defineCommand } from './commands/define-command.ts';
export type { StreamState } from './commands/define-state.ts';
export { defineState } from './commands/define-state.ts';
export type { StateOptions, StateSnapshots } from './commands/state-snapshots.ts';
export type { DatabaseOptions } from './config/database-options.ts';
export type { Declarations } from './config/declarations.ts';
export type { Config, ConfigOptions } from './config/define-config.ts';
export { defineConfig } from './config/define-config.ts';
export type { GatewayOptions } from './config/gateway-options.ts';
export type {
  CorsOptions,
  FieldUsageOptions,
  PersistedOperationsOptions,
  RateLimitOptions,
} from './config/gateway-policies.ts';
export type { AuditOptions, PollingOptions, RuntimeOptions } from './config/runtime-options.ts';
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
export { type JwtOptions, jwt } from './gateway/jwt.ts';
export type {
  ActivationOptions,
  ActivationRule,
  BreakingRule,
  ShadowGateOptions,
} from './projections/activation-rule.ts';
export type { Column, Columns, DecimalInput, IndexOptions, KeyOf, RowInputOf, RowOf } from './projections/column.ts';
export { t } from './projections/column.ts';
export { type ColumnLimit, columnLimits } from './projections/column-limits.ts';
export type { Decimal } from './projections/decimal.ts';
export { decimal } from './projections/decimal.ts';
export { defineProjection } from './projections/define-projection.ts';
export type { HistoryOption } from './projections/history.ts';
export type {
  ErrorPolicy,
  EventFilter,
  FoldFailure,
  GraphqlNames,
  Projection,
  ProjectionMode,
  SnapshotSchedule,
} from './projections/projection.ts';
export type {
  CommonOptions,
  EvolveOptions,
  EvolveSqlOptions,
  ProjectionOptions,
} from './projections/projection-options.ts';
export type { ManyRelation, OneRelation } from './projections/relations.ts';
export { many, one } from './projections/relations.ts';
export type { HookContext, TableHook } from './projections/table-hooks.ts';
export type { CanaryRule } from './projections/version-map.ts';
export type { ReactorHandler, ReactorOptions } from './reactors/define-reactor.ts';
export { defineReactor } from './reactors/define-reactor.ts';
export type {
  Handled,
  HandlerResult,
  Reactor,
  ReactorContext,
  ReactorErrorPolicy,
  ReactorFailure,
  StepOptions,
  StepResult,
} from './reactors/reactor.ts';
export type { ErrorClass, RetryRule } from './reactors/retry-rules.ts';
export type { Refold, RefoldOptions } from './refold.ts';
export { createRefold } from './refold.ts';
export type { UsedChange, UsedChanges } from './runtime/change-usage.ts';
export type { ExecuteOptions, ExecuteResult } from './runtime/command-handler.ts';
export type { Consumer, ConsumerOptions, Subscription } from './runtime/consumer.ts';
export { createConsumer } from './runtime/consumer.ts';
export type { EventProcessor, EventProcessorOptions } from './runtime/event-processor.ts';
export { eventProcessor } from './runtime/event-processor.ts';
export type { EventPage, EventSource, Processor } from './runtime/event-source.ts';
export type { Evolution, RecordedUsage } from './runtime/evolution.ts';
export type { Lifecycle } from './runtime/lifecycle.ts';
export type { ReactorStatus, ReactorSteps } from './runtime/reactor-steps.ts';
export type { SchemaChanges } from './runtime/schema-changes.ts';
export type { PartitionStatus, VersionStatus, VersionVerification } from './runtime/status.ts';
export type { ActivateOptions, StepReason } from './runtime/step.ts';
export type { Difference } from './runtime/verify.ts';
export type { Builder } from './schema/builder.ts';
export { extendSchema, type RowFieldMaker, type SchemaExtension, type SchemaTools } from './schema/extend-schema.ts';
export type { OperationContext, ReadModels } from './schema/operation-context.ts';
export type { Criticality, SchemaChange } from './schema/schema-diff.ts';
export type { VersionChange } from './schema/version-changes.ts';
export type { AppendRequest, AppendResult, AppendToStreamsRequest, EventLog } from './store/event-log.ts';
export type { FieldUsage, UsageQuery } from './store/field-usage.ts';
export type { ReactorLetter } from './store/reactor-letters.ts';
export type { ReactorStep } from './store/reactors.ts';
export type { Shadow, ShadowExample } from './store/shadows.ts';
export type { StateOf, StateOfOptions } from './store/stream-state.ts';
