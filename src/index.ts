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
export type {
  CommandContext,
  CommandOptions,
  CommandStream,
  DecideContext,
  DecideStreamsContext,
  LoadContext,
  StreamsCommandOptions,
} from './commands/command-options.ts';
export type { Command } from './commands/define-command.ts';
export { defineCommand } from './commands/define-command.ts';
export type { StreamState } from './commands/define-state.ts';
export { defineState } from './commands/define-state.ts';
export type { StateOptions, StateSnapshots } from './commands/state-snapshots.ts';
export type { AdminCaller, AdminOptions, AdminRight, AdminRights, AdminToken } from './config/admin-options.ts';
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
export type { ReadStoreOptions } from './config/read-store-options.ts';
export type { AuditOptions, OwnershipKind, PollingOptions, RuntimeOptions } from './config/runtime-options.ts';
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
export { type JwtOptions, jwt } from './gateway/policies/jwt.ts';
export { createLogger, type LogOptions } from './logger.ts';
export type {
  Column,
  Columns,
  DecimalInput,
  IndexOptions,
  KeyOf,
  RowInputOf,
  RowOf,
} from './projections/columns/column.ts';
export { t } from './projections/columns/column.ts';
export type { Decimal } from './projections/columns/decimal.ts';
export { decimal } from './projections/columns/decimal.ts';
export type { ColumnLimit } from './projections/columns/value-codec.ts';
export { columnLimits } from './projections/declaration/column-limits.ts';
export { defineProjection } from './projections/declaration/define-projection.ts';
export type {
  CommonOptions,
  EvolveOptions,
  EvolveSqlOptions,
  ProjectionOptions,
} from './projections/declaration/projection-options.ts';
export type {
  ActivationOptions,
  ActivationRule,
  BreakingRule,
} from './projections/projection/activation-rule.ts';
export type { HistoryOption, HistoryRules, PayloadRule } from './projections/projection/history.ts';
export type {
  ErrorPolicy,
  EventFilter,
  FoldFailure,
  GraphqlNames,
  Projection,
  ProjectionMode,
  SnapshotSchedule,
} from './projections/projection/projection.ts';
export type { ManyRelation, OneRelation } from './projections/projection/relations.ts';
export { many, one } from './projections/projection/relations.ts';
export type { ErrorClass, RetryRule } from './projections/projection/retry-rules.ts';
export type { HookContext, TableHook } from './projections/projection/table-hooks.ts';
export type { CanaryRule } from './projections/projection/version-map.ts';
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
export type { WaitForOptions, Waits, WaitUntilOptions } from './reactors/wait.ts';
export type { Refold, RefoldOptions } from './refold.ts';
export { createRefold } from './refold.ts';
export type { RecordedUsage, SchemaEvolution } from './runtime/activation/schema-evolution.ts';
export type { ExecuteOptions, ExecuteResult } from './runtime/commands/command-handler.ts';
export type { Consumer, ConsumerOptions, LogSubscription } from './runtime/consumers/consumer.ts';
export { createConsumer } from './runtime/consumers/consumer.ts';
export type { EventProcessor, EventProcessorOptions } from './runtime/consumers/event-processor.ts';
export { eventProcessor } from './runtime/consumers/event-processor.ts';
export type { EventPage, EventSource, Processor } from './runtime/consumers/event-source.ts';
export type { PartitionStatus, VersionStatus, VersionVerification } from './runtime/monitoring/status.ts';
export type { ReactorOperations, ReactorStatus } from './runtime/reactors/reactor-operations.ts';
export type { ReactorVersionStatus } from './runtime/reactors/reactor-versions.ts';
export type { RebuildRequest, Rebuilds } from './runtime/rebuilds/rebuild-requests.ts';
export type { UsedChange, UsedChanges } from './runtime/schema-changes/change-usage.ts';
export type { SchemaChanges } from './runtime/schema-changes/schema-changes.ts';
export type { Difference } from './runtime/verification/verify.ts';
export type { ActivateOptions, TransitionReason } from './runtime/versions/expect-version.ts';
export type { Lifecycle } from './runtime/versions/lifecycle.ts';
export type { Criticality, SchemaChange } from './schema/analysis/schema-diff.ts';
export type { Builder, BuilderTypes } from './schema/builder/builder.ts';
export type { RootFieldOptions } from './schema/builder/root-field-options.ts';
export type { OperationContext, ReadModels } from './schema/contract/operation-context.ts';
export {
  type ExtensionOptions,
  extendSchema,
  type RowFieldMaker,
  type SchemaExtension,
  type SchemaTools,
} from './schema/extend-schema.ts';
export type { OwnQuery, OwnReadOptions, ReadModelTools } from './schema/fields/read-model-tools.ts';
export type { VersionChange } from './schema/version-changes.ts';
export type { AppendRequest, AppendToStreamsRequest, EventLog } from './store/event-log.ts';
export type { AppendResult } from './store/log/append-result.ts';
export type { StateOf, StateOfOptions } from './store/log/stream-state.ts';
export type { WaitingEvent } from './store/reactors/reactor-instances.ts';
export type { ReactorLetter } from './store/reactors/reactor-letters.ts';
export type { ReactorOperation } from './store/reactors/reactors.ts';
export type { FieldUsage, UsageQuery } from './store/registry/field-usage.ts';
export type { Shadow, ShadowExample } from './store/registry/shadows.ts';
export type { WhichSnapshot } from './store/tables/table-snapshots.ts';
