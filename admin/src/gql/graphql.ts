/* eslint-disable */
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** Exactly one action. */
export type ActionInput =
  {   acceptRebuild: VersionInput; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never;   activate: ActivateInput; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never;   cancelRebuild: VersionInput; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never;   cancelWaitingEvent: ReactorPositionInput; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never;   discardDeadLetters: DeadLettersInput; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never;   dropSnapshot: SnapshotInput; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never;   endCanary: EndCanaryInput; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never;   forgetReactor: ReactorInput; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never;   pause: VersionInput; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never;   pauseReactor: ReactorInput; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never;   rebuild: RebuildInput; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never;   recallDiscards: RecallInput; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never;   restoreSnapshot: SnapshotInput; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never;   resume: VersionInput; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never;   resumeReactor: ReactorInput; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never;   retire: RetireInput; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never;   retryDeadLetters: DeadLettersInput; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never;   rewindReactor: ReactorPositionInput; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never;   rollback: RollbackInput; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never;   skipReactor: ReactorPositionInput; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never;   startCanary: StartCanaryInput; startShadow?: never; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never;   startShadow: StartShadowInput; stopShadow?: never; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never;   stopShadow: VersionInput; takeSnapshot?: never; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never;   takeSnapshot: VersionInput; withdrawReactorVersion?: never; }
  |  { acceptRebuild?: never; activate?: never; cancelRebuild?: never; cancelWaitingEvent?: never; discardDeadLetters?: never; dropSnapshot?: never; endCanary?: never; forgetReactor?: never; pause?: never; pauseReactor?: never; rebuild?: never; recallDiscards?: never; restoreSnapshot?: never; resume?: never; resumeReactor?: never; retire?: never; retryDeadLetters?: never; rewindReactor?: never; rollback?: never; skipReactor?: never; startCanary?: never; startShadow?: never; stopShadow?: never; takeSnapshot?: never;   withdrawReactorVersion: ReactorVersionInput; };

export type ActionName =
  | 'ACCEPT_REBUILD'
  | 'ACTIVATE'
  | 'CANCEL_REBUILD'
  | 'CANCEL_WAITING_EVENT'
  | 'DISCARD_DEAD_LETTERS'
  | 'DROP_SNAPSHOT'
  | 'END_CANARY'
  | 'FORGET_REACTOR'
  | 'PAUSE'
  | 'PAUSE_REACTOR'
  | 'REBUILD'
  | 'RECALL_DISCARDS'
  | 'RESTORE_SNAPSHOT'
  | 'RESUME'
  | 'RESUME_REACTOR'
  | 'RETIRE'
  | 'RETRY_DEAD_LETTERS'
  | 'REWIND_REACTOR'
  | 'ROLLBACK'
  | 'SKIP_REACTOR'
  | 'START_CANARY'
  | 'START_SHADOW'
  | 'STOP_SHADOW'
  | 'TAKE_SNAPSHOT'
  | 'WITHDRAW_REACTOR_VERSION';

export type ActivateInput = {
  /** Also if clients of the version that answers would lose fields. */
  allowBreaking?: boolean | null | undefined;
  /** Versions that become active with it, or none of them: those of related read models, in the same read store. */
  along?: Array<string | number>;
  version: string | number;
};

export type AuditFilter = {
  /** Exactly this name. */
  actor?: string | null | undefined;
  projection?: string | null | undefined;
  reactor?: string | null | undefined;
  since?: string | null | undefined;
  until?: string | null | undefined;
  version?: number | null | undefined;
};

export type Criticality =
  | 'BREAKING'
  | 'DANGEROUS'
  | 'SAFE';

export type DeadLetterFilter = {
  /** The message of the error, whole or as a group has it. */
  error?: string | null | undefined;
  eventType?: string | null | undefined;
  /** Only those that failed, or only those that wait behind one. */
  failed?: boolean | null | undefined;
  /** Such as `cart_summary@2`, or the name of a reactor. */
  of?: string | number | null | undefined;
  /** The frames of the stack as a group has them. */
  stack?: string | null | undefined;
  streamId?: string | null | undefined;
};

export type DeadLetterGrouping =
  /** The message, without the position and the stream of the event. */
  | 'ERROR'
  | 'EVENT'
  | 'OF'
  /** Where the error was thrown. */
  | 'STACK'
  | 'STREAM';

/** Either `ids`, or all that match `filter`. A retry folds the dead letters of a row in order, from the first one, whichever of them is named. A discard leaves out the failed ones that are named, and folds what waited behind them. A run visits a bounded number. If `Outcome.next` is not null, run the action again with it as `after`, for the rest. */
export type DeadLettersInput = {
  after?: string | null | undefined;
  filter?: DeadLetterFilter | null | undefined;
  /** At most 1000. */
  ids?: Array<string | number> | null | undefined;
};

export type EndCanaryInput = {
  projection: string;
};

export type EventFilter = {
  /** Only events after this position. */
  afterPosition?: string | null | undefined;
  correlationId?: string | null | undefined;
  /** The family of `streamId`. */
  family?: string | null | undefined;
  /** Recorded at this time or later. */
  since?: string | null | undefined;
  streamId?: string | null | undefined;
  /** `Opened`, `account.Opened` or `account.*`. */
  types?: Array<string> | null | undefined;
  /** Recorded before this time. */
  until?: string | null | undefined;
  /** Only events up to this position. */
  upToPosition?: string | null | undefined;
};

export type EventOrder =
  | 'NEWEST_FIRST'
  | 'OLDEST_FIRST';

/** Whether a version needs attention, the worst first. */
export type Health =
  /** It is behind, and moves. */
  | 'BEHIND'
  /** It is being built. */
  | 'BUILDING'
  | 'CURRENT'
  /** It is ready, and something keeps it from answering. */
  | 'HELD'
  | 'PAUSED'
  | 'RETIRED'
  /** It is behind, and does not move. */
  | 'STALLED'
  /** Its processor has stopped at an error, or the version has failed. */
  | 'STOPPED'
  /** Nothing checks its unique values, so appends are refused. */
  | 'UNCHECKED'
  /** No process maintains it. */
  | 'UNOWNED';

export type ReactorInput = {
  reactor: string | number;
};

export type ReactorPositionInput = {
  position: string;
  reactor: string | number;
};

export type ReactorVersionInput = {
  reactor: string | number;
  version: number;
};

export type RebuildInput = {
  /** Start with the newest snapshot at or below this position. */
  fromPosition?: string | null | undefined;
  /** Start with the rows of this snapshot. */
  fromSnapshot?: string | null | undefined;
  /** Rebuild the table itself; the version is not served meanwhile. */
  inPlace?: boolean | null | undefined;
  version: string | number;
};

export type RecallInput = {
  /** The row's key as JSON. All rows if absent. */
  key?: unknown;
  version: string | number;
};

export type RetireInput = {
  /** Also if running processes lose it, or if a rule for unique values ends. */
  allowLoss?: boolean | null | undefined;
  /** Also if it is the version that answers. */
  force?: boolean | null | undefined;
  /** Hours until its table is dropped. */
  graceHours?: number | null | undefined;
  version: string | number;
};

/** What a token may do. Every action names the right that it needs. */
export type Right =
  | 'ACTIVATE'
  | 'CANARY'
  /** See payloads of events and rows of read tables. They may hold personal data. */
  | 'DATA'
  | 'DISCARD_DEAD_LETTERS'
  | 'PAUSE'
  | 'REACTORS'
  /** See everything except what `DATA` shows. */
  | 'READ'
  | 'REBUILD'
  | 'RETIRE'
  | 'RETRY_DEAD_LETTERS'
  | 'ROLLBACK'
  | 'SHADOW'
  | 'SNAPSHOT'
  /** Run verifications and diffs, which are heavy reads. */
  | 'VERIFY';

export type RollbackInput = {
  projection: string;
  /** Refused if another version is the highest active one. */
  version?: number | null | undefined;
};

export type SnapshotInput = {
  snapshot: string;
  version: string | number;
};

export type StartCanaryInput = {
  /** Also if clients of the version that answers would lose fields. */
  allowBreaking?: boolean | null | undefined;
  /** Requests with this header. */
  header?: string | null | undefined;
  /** And this value. Any value if absent. */
  headerValue?: string | null | undefined;
  /** Share of the clients, 0 to 100. */
  percent?: number | null | undefined;
  version: string | number;
};

export type StartShadowInput = {
  /** Compare about one in this many queries. */
  oneOf: number;
  version: string | number;
};

export type StepOutcome =
  /** `evolve` fails at this event with the code of this process. */
  | 'FAILED'
  /** The event was folded. */
  | 'FOLDED'
  /** The version does not handle events of this type. */
  | 'IGNORED'
  /** The table leaves the event out: a dead letter, skipped or discarded. */
  | 'LEFT_OUT';

export type VersionInput = {
  version: string | number;
};

export type VersionState =
  | 'ACTIVE'
  | 'BUILDING'
  | 'FAILED'
  | 'READY'
  | 'RETIRED';

export type PreviewQueryVariables = Exact<{
  action: ActionInput;
}>;


export type PreviewQuery = { preview: { action: ActionName, of: string | null, right: Right, isAllowed: boolean, summary: string, details: Array<string>, warnings: Array<string>, refusal: string | null, overcomeBy: Array<string>, digest: string | null, concerns: { value: number, isExact: boolean } | null } };

export type RunMutationVariables = Exact<{
  action: ActionInput;
  digest: string;
  reason: string;
}>;


export type RunMutation = { run: { action: ActionName, summary: string, folded: number | null, discarded: number | null, left: number | null, next: string | null } };

export type ClientsQueryVariables = Exact<{
  days: number;
  after?: string | null | undefined;
}>;


export type ClientsQuery = { clients: { next: string | null, items: Array<{ name: string, version: string, operations: number, pins: Array<string>, lastAt: string, fields: { value: number, isExact: boolean } }> } };

export type FieldUsageQueryVariables = Exact<{
  path?: string | null | undefined;
  client?: string | null | undefined;
  days: number;
  after?: string | null | undefined;
}>;


export type FieldUsageQuery = { fieldUsage: { next: string | null, recordedDays: number | null, items: Array<{ path: string, client: string, clientVersion: string, pins: Array<string>, operations: number, lastAt: string }> } };

export type PendingChangesQueryVariables = Exact<{ [key: string]: never; }>;


export type PendingChangesQuery = { pendingChanges: Array<{ version: string, than: string, breakingCount: number, days: number, recordedDays: number | null, changes: Array<{ criticality: Criticality, message: string, path: string | null, isDerived: boolean, usedBy: Array<{ path: string, client: string, clientVersion: string, operations: number, lastAt: string }> }> }> };

export type AuditLogQueryVariables = Exact<{
  filter?: AuditFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type AuditLogQuery = { auditLog: { next: string | null, storesAway: Array<string>, items: Array<{ id: string, at: string, of: string, isReactor: boolean, operation: string, from: VersionState | null, to: VersionState | null, fromPosition: string | null, toPosition: string | null, actor: string, reason: string }> } };

export type ReactorDetailQueryVariables = Exact<{
  name: string | number;
}>;


export type ReactorDetailQuery = { reactor: { actions: Array<ActionName>, name: string, state: string, isDeclared: boolean, owner: string | null, position: string, head: string, lag: string, handled: string, skipped: string, nextDue: string | null, versions: Array<{ number: number, after: string, upTo: string | null, isNeeded: boolean, underWay: { value: number, isExact: boolean } }>, waitingEvents: Array<{ position: string, eventType: string, streamId: string, step: string, awaits: Array<string>, awaitedKey: string | null, due: string | null, since: string, isWoken: boolean }>, deadLetters: { value: number, isExact: boolean }, waiting: { value: number, isExact: boolean }, error: { message: string, at: string, code: string | null } | null } | null };

export type ReactorHistoryQueryVariables = Exact<{
  name: string | number;
  after?: string | null | undefined;
}>;


export type ReactorHistoryQuery = { reactor: { name: string, history: { next: string | null, items: Array<{ id: string, at: string, of: string, isReactor: boolean, operation: string, from: VersionState | null, to: VersionState | null, fromPosition: string | null, toPosition: string | null, actor: string, reason: string }> } } | null };

export type DeadLettersQueryVariables = Exact<{
  filter?: DeadLetterFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type DeadLettersQuery = { deadLetters: { next: string | null, storesAway: Array<string>, items: Array<{ id: string, of: string, isReactor: boolean, position: string, eventType: string, streamId: string, key: unknown, attempts: number, at: string, requested: string | null, error: { message: string } | null }> } };

export type DeadLetterDetailQueryVariables = Exact<{
  id: string | number;
  position: string;
  data: boolean;
}>;


export type DeadLetterDetailQuery = { deadLetter: { takenBy: Array<unknown> | null, error: { message: string, stack: string | null } | null, blocked: { value: number, isExact: boolean } } | null, event: { payload?: unknown, metadata?: unknown, position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null } | null };

export type DeadLetterGroupsQueryVariables = Exact<{
  by: Array<DeadLetterGrouping> | DeadLetterGrouping;
  filter?: DeadLetterFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type DeadLetterGroupsQuery = { deadLetterGroups: { visited: number, next: string | null, storesAway: Array<string>, items: Array<{ error: string | null, stack: string | null, eventType: string | null, streamId: string | null, of: string | null, count: number, waiting: number, firstPosition: string, lastAt: string }> } };

export type DiscardsQueryVariables = Exact<{
  version: string | number;
  after?: string | null | undefined;
}>;


export type DiscardsQuery = { discards: { next: string | null, items: Array<{ position: string, eventType: string, streamId: string, key: unknown, actor: string, reason: string, at: string }> } };

export type EventsQueryVariables = Exact<{
  filter?: EventFilter | null | undefined;
  order?: EventOrder | null | undefined;
  after?: string | null | undefined;
}>;


export type EventsQuery = { events: { next: string | null, searchedTo: string | null, items: Array<{ position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null }> } };

export type EventsAppendedSubscriptionVariables = Exact<{
  filter?: EventFilter | null | undefined;
}>;


export type EventsAppendedSubscription = { eventsAppended: Array<{ position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null }> };

export type EventDetailQueryVariables = Exact<{
  position: string;
  data: boolean;
}>;


export type EventDetailQuery = { event: { payload?: unknown, metadata?: unknown, position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null, rows?: Array<{ version: string, projection: string, key: unknown, hasHistory: boolean }> } | null };

export type EventLineFragment = { position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null };

export type RowHistoryQueryVariables = Exact<{
  projection: string;
  key: unknown;
  versions?: Array<number> | number | null | undefined;
  after?: string | null | undefined;
}>;


export type RowHistoryQuery = { rowHistory: { key: unknown, versions: Array<string>, next: string | null, columns: Array<{ name: string, versions: Array<string>, isHidden: boolean }>, items: Array<{ event: { payload: unknown, position: string, id: string, family: string, streamId: string, streamPosition: string, type: string, payloadVersion: number, recordedAt: string, correlationId: string | null, causationId: string | null }, states: Array<{ version: string, outcome: StepOutcome, before: unknown, after: unknown, changed: Array<string>, message: string | null }> }> } };

export type RowsQueryVariables = Exact<{
  version: string | number;
  after?: string | null | undefined;
}>;


export type RowsQuery = { version: { id: string, keyColumns: Array<string> } | null, rows: { next: string | null, items: Array<{ key: unknown, row: unknown }> } };

export type MeQueryVariables = Exact<{ [key: string]: never; }>;


export type MeQuery = { me: { name: string, rights: Array<Right>, process: string } };

export type OverviewChangesSubscriptionVariables = Exact<{ [key: string]: never; }>;


export type OverviewChangesSubscription = { overviewChanges: { removedVersions: Array<string>, removedReactors: Array<string>, overview: { at: string, head: string, horizon: string, viewsBehind: Array<string>, appendsPerSecond: number, versionCount: number, stalls: Array<{ position: string, pid: number | null, seconds: number, text: string }>, health: Array<{ health: Health, count: number }>, deadLetters: { value: number, isExact: boolean }, processes: Array<{ name: string, role: string | null, versions: Array<string>, owns: Array<string>, startedAt: string, heartbeatAt: string }>, lostOwners: Array<{ name: string, units: number, seconds: number | null }>, leases: Array<{ store: string, unit: string, owner: string | null, expiresAt: string }>, connections: { limit: number, used: number, groups: Array<{ applicationName: string, state: string, count: number }> }, stores: Array<{ name: string, isAway: boolean, versionCount: number, lastKnown: { at: string, versions: Array<{ id: string, state: VersionState, position: string }> } | null, connections: { limit: number, used: number, groups: Array<{ applicationName: string, state: string, count: number }> } | null }>, answers: Array<{ projection: string, version: string | null, canary: string | null, processes: Array<string> }> }, versions: Array<{ id: string, projection: string, number: number, store: string, state: VersionState, health: Health, isDeclared: boolean, answers: boolean, inline: string | null, unchecked: string | null, position: string, head: string, lag: string, lagSeconds: number, progress: number, eventsPerSecond: number, etaSeconds: number | null, owner: string | null, heldReason: string | null, lagEvents: { value: number, isExact: boolean }, error: { message: string } | null, paused: { by: string, reason: string } | null, canary: { text: string } | null, rebuild: { form: string, progress: number } | null, deadLetters: { value: number, isExact: boolean } }>, reactors: Array<{ name: string, state: string, isDeclared: boolean, owner: string | null, position: string, head: string, lag: string, handled: string, skipped: string, nextDue: string | null, deadLetters: { value: number, isExact: boolean }, waiting: { value: number, isExact: boolean }, error: { message: string, at: string, code: string | null } | null }> } };

export type OverviewPartsFragment = { at: string, head: string, horizon: string, viewsBehind: Array<string>, appendsPerSecond: number, versionCount: number, stalls: Array<{ position: string, pid: number | null, seconds: number, text: string }>, health: Array<{ health: Health, count: number }>, deadLetters: { value: number, isExact: boolean }, processes: Array<{ name: string, role: string | null, versions: Array<string>, owns: Array<string>, startedAt: string, heartbeatAt: string }>, lostOwners: Array<{ name: string, units: number, seconds: number | null }>, leases: Array<{ store: string, unit: string, owner: string | null, expiresAt: string }>, connections: { limit: number, used: number, groups: Array<{ applicationName: string, state: string, count: number }> }, stores: Array<{ name: string, isAway: boolean, versionCount: number, lastKnown: { at: string, versions: Array<{ id: string, state: VersionState, position: string }> } | null, connections: { limit: number, used: number, groups: Array<{ applicationName: string, state: string, count: number }> } | null }>, answers: Array<{ projection: string, version: string | null, canary: string | null, processes: Array<string> }> };

export type VersionLineFragment = { id: string, projection: string, number: number, store: string, state: VersionState, health: Health, isDeclared: boolean, answers: boolean, inline: string | null, unchecked: string | null, position: string, head: string, lag: string, lagSeconds: number, progress: number, eventsPerSecond: number, etaSeconds: number | null, owner: string | null, heldReason: string | null, lagEvents: { value: number, isExact: boolean }, error: { message: string } | null, paused: { by: string, reason: string } | null, canary: { text: string } | null, rebuild: { form: string, progress: number } | null, deadLetters: { value: number, isExact: boolean } };

export type ReactorLineFragment = { name: string, state: string, isDeclared: boolean, owner: string | null, position: string, head: string, lag: string, handled: string, skipped: string, nextDue: string | null, deadLetters: { value: number, isExact: boolean }, waiting: { value: number, isExact: boolean }, error: { message: string, at: string, code: string | null } | null };

export type LagTrendsQueryVariables = Exact<{
  first: number;
}>;


export type LagTrendsQuery = { versions: { items: Array<{ id: string, lagTrend: Array<{ at: string, lag: string }> }> } };

export type VersionDetailQueryVariables = Exact<{
  id: string | number;
}>;


export type VersionDetailQuery = { version: { startsAfter: string | null, eventsFolded: string, eventsSkipped: string, retries: string, missingIndexes: Array<string>, actions: Array<ActionName>, id: string, projection: string, number: number, store: string, state: VersionState, health: Health, isDeclared: boolean, answers: boolean, inline: string | null, unchecked: string | null, position: string, head: string, lag: string, lagSeconds: number, progress: number, eventsPerSecond: number, etaSeconds: number | null, owner: string | null, heldReason: string | null, retrying: { position: string, attempts: number, message: string, nextAt: string } | null, partitions: Array<{ number: number, processor: string, owner: string | null, position: string, lag: string, error: { message: string, at: string } | null }>, error: { message: string, at: string, code: string | null } | null, paused: { by: string, reason: string, since: string } | null, canary: { percent: number, header: string | null, headerValue: string | null, text: string, operations: number, errors: number, otherOperations: number, otherErrors: number } | null, shadow: { oneOf: number, startedAt: string, stoppedAt: string | null, same: number, different: number, failed: number, skipped: number, examples: Array<{ operation: string, path: string, times: number, older: string | null, newer: string | null, seenAt: string }> } | null, rebuild: { form: string, position: string, startedAtPosition: string, snapshot: string | null, progress: number, eventsPerSecond: number, etaSeconds: number | null, requestedBy: string, reason: string, owner: string | null, heldReason: string | null, error: { message: string, at: string } | null } | null, verification: { kind: string, endedAt: string, position: string, rowsCompared: string, differences: string, foundAt: string | null, samples: Array<{ key: string, kind: string, columns: Array<string> }> } | null, lagTrend: Array<{ at: string, lag: string }>, snapshots: Array<{ id: string, position: string, takenAt: string }>, lagEvents: { value: number, isExact: boolean }, deadLetters: { value: number, isExact: boolean } } | null };

export type VersionHistoryQueryVariables = Exact<{
  id: string | number;
  after?: string | null | undefined;
}>;


export type VersionHistoryQuery = { version: { id: string, history: { next: string | null, storesAway: Array<string>, items: Array<{ id: string, at: string, of: string, isReactor: boolean, operation: string, from: VersionState | null, to: VersionState | null, fromPosition: string | null, toPosition: string | null, actor: string, reason: string }> } } | null };

export type VersionRunsQueryVariables = Exact<{
  id: string | number;
  after?: string | null | undefined;
}>;


export type VersionRunsQuery = { version: { id: string, runs: { next: string | null, items: Array<{ kind: string, partition: number, startedAt: string, endedAt: string, fromPosition: string, toPosition: string, batches: number, events: string, rows: string, busyMs: string }> } } | null };

export type VersionTableQueryVariables = Exact<{
  id: string | number;
}>;


export type VersionTableQuery = { version: { id: string, actions: Array<ActionName>, missingIndexes: Array<string>, table: { schema: string, name: string, rows: string | null, bytes: string, indexBytes: string, indexes: Array<{ name: string, definition: string, bytes: string, scans: string, isValid: boolean }> } | null, columns: Array<{ name: string, type: string, isKey: boolean, isHidden: boolean }>, snapshots: Array<{ id: string, position: string, rows: string, bytes: string, deadLetters: number, automatic: boolean, isOfThisCode: boolean, takenAt: string, actor: string, reason: string }> } | null };

export type VersionClientsQueryVariables = Exact<{
  id: string | number;
}>;


export type VersionClientsQuery = { version: { id: string, pins: Array<{ client: string, clientVersion: string, operations: number, lastAt: string }> } | null };

export type VersionSchemaChangesQueryVariables = Exact<{
  id: string | number;
}>;


export type VersionSchemaChangesQuery = { schemaChanges: { version: string, than: string, breakingCount: number, days: number, recordedDays: number | null, changes: Array<{ criticality: Criticality, message: string, path: string | null, isDerived: boolean, usedBy: Array<{ path: string, client: string, clientVersion: string, operations: number, lastAt: string }> }> } };

export type DiffQueryVariables = Exact<{
  older: string | number;
  newer: string | number;
}>;


export type DiffQuery = { diff: { older: string, newer: string, position: string, rows: string, onlyOlder: string, onlyNewer: string, columns: Array<{ name: string, rows: string }>, samples: Array<{ key: unknown, older: unknown, newer: unknown }> } };

export type VerifySubscriptionVariables = Exact<{
  version: string | number;
  oneOf: number;
}>;


export type VerifySubscription = { verify: { position: string, of: string, result: { position: string, rowsCompared: string, differences: string, samples: Array<{ key: string, kind: string, columns: Array<string> }> } | null } };

export type AuditLineFragment = { id: string, at: string, of: string, isReactor: boolean, operation: string, from: VersionState | null, to: VersionState | null, fromPosition: string | null, toPosition: string | null, actor: string, reason: string };

export type SchemaChangeListFragment = { version: string, than: string, breakingCount: number, days: number, recordedDays: number | null, changes: Array<{ criticality: Criticality, message: string, path: string | null, isDerived: boolean, usedBy: Array<{ path: string, client: string, clientVersion: string, operations: number, lastAt: string }> }> };

export class TypedDocumentString<TResult, TVariables>
  extends String
  implements DocumentTypeDecoration<TResult, TVariables>
{
  __apiType?: NonNullable<DocumentTypeDecoration<TResult, TVariables>['__apiType']>;
  private value: string;
  public __meta__?: Record<string, any> | undefined;

  constructor(value: string, __meta__?: Record<string, any> | undefined) {
    super(value);
    this.value = value;
    this.__meta__ = __meta__;
  }

  override toString(): string & DocumentTypeDecoration<TResult, TVariables> {
    return this.value;
  }
}
export const EventLineFragmentDoc = new TypedDocumentString(`
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}
    `, {"fragmentName":"EventLine"}) as unknown as TypedDocumentString<EventLineFragment, unknown>;
export const OverviewPartsFragmentDoc = new TypedDocumentString(`
    fragment OverviewParts on Overview {
  at
  head
  horizon
  stalls {
    position
    pid
    seconds
    text
  }
  viewsBehind
  appendsPerSecond
  versionCount
  health {
    health
    count
  }
  deadLetters {
    value
    isExact
  }
  processes {
    name
    role
    versions
    owns
    startedAt
    heartbeatAt
  }
  lostOwners {
    name
    units
    seconds
  }
  leases {
    store
    unit
    owner
    expiresAt
  }
  connections {
    limit
    used
    groups {
      applicationName
      state
      count
    }
  }
  stores {
    name
    isAway
    versionCount
    lastKnown {
      at
      versions {
        id
        state
        position
      }
    }
    connections {
      limit
      used
      groups {
        applicationName
        state
        count
      }
    }
  }
  answers {
    projection
    version
    canary
    processes
  }
}
    `, {"fragmentName":"OverviewParts"}) as unknown as TypedDocumentString<OverviewPartsFragment, unknown>;
export const VersionLineFragmentDoc = new TypedDocumentString(`
    fragment VersionLine on Version {
  id
  projection
  number
  store
  state
  health
  isDeclared
  answers
  inline
  unchecked
  position
  head
  lag
  lagEvents {
    value
    isExact
  }
  lagSeconds
  progress
  eventsPerSecond
  etaSeconds
  owner
  heldReason
  error {
    message
  }
  paused {
    by
    reason
  }
  canary {
    text
  }
  rebuild {
    form
    progress
  }
  deadLetters {
    value
    isExact
  }
}
    `, {"fragmentName":"VersionLine"}) as unknown as TypedDocumentString<VersionLineFragment, unknown>;
export const ReactorLineFragmentDoc = new TypedDocumentString(`
    fragment ReactorLine on Reactor {
  name
  state
  isDeclared
  owner
  position
  head
  lag
  handled
  skipped
  deadLetters {
    value
    isExact
  }
  waiting {
    value
    isExact
  }
  nextDue
  error {
    message
    at
    code
  }
}
    `, {"fragmentName":"ReactorLine"}) as unknown as TypedDocumentString<ReactorLineFragment, unknown>;
export const AuditLineFragmentDoc = new TypedDocumentString(`
    fragment AuditLine on AuditEntry {
  id
  at
  of
  isReactor
  operation
  from
  to
  fromPosition
  toPosition
  actor
  reason
}
    `, {"fragmentName":"AuditLine"}) as unknown as TypedDocumentString<AuditLineFragment, unknown>;
export const SchemaChangeListFragmentDoc = new TypedDocumentString(`
    fragment SchemaChangeList on SchemaChanges {
  version
  than
  breakingCount
  days
  recordedDays
  changes {
    criticality
    message
    path
    isDerived
    usedBy {
      path
      client
      clientVersion
      operations
      lastAt
    }
  }
}
    `, {"fragmentName":"SchemaChangeList"}) as unknown as TypedDocumentString<SchemaChangeListFragment, unknown>;
export const PreviewDocument = new TypedDocumentString(`
    query Preview($action: ActionInput!) {
  preview(action: $action) {
    action
    of
    right
    isAllowed
    summary
    details
    warnings
    refusal
    overcomeBy
    concerns {
      value
      isExact
    }
    digest
  }
}
    `) as unknown as TypedDocumentString<PreviewQuery, PreviewQueryVariables>;
export const RunDocument = new TypedDocumentString(`
    mutation Run($action: ActionInput!, $digest: String!, $reason: String!) {
  run(action: $action, digest: $digest, reason: $reason) {
    action
    summary
    folded
    discarded
    left
    next
  }
}
    `) as unknown as TypedDocumentString<RunMutation, RunMutationVariables>;
export const ClientsDocument = new TypedDocumentString(`
    query Clients($days: Int!, $after: String) {
  clients(days: $days, first: 50, after: $after) {
    items {
      name
      version
      fields {
        value
        isExact
      }
      operations
      pins
      lastAt
    }
    next
  }
}
    `) as unknown as TypedDocumentString<ClientsQuery, ClientsQueryVariables>;
export const FieldUsageDocument = new TypedDocumentString(`
    query FieldUsage($path: String, $client: String, $days: Int!, $after: String) {
  fieldUsage(path: $path, client: $client, days: $days, first: 50, after: $after) {
    items {
      path
      client
      clientVersion
      pins
      operations
      lastAt
    }
    next
    recordedDays
  }
}
    `) as unknown as TypedDocumentString<FieldUsageQuery, FieldUsageQueryVariables>;
export const PendingChangesDocument = new TypedDocumentString(`
    query PendingChanges {
  pendingChanges {
    ...SchemaChangeList
  }
}
    fragment SchemaChangeList on SchemaChanges {
  version
  than
  breakingCount
  days
  recordedDays
  changes {
    criticality
    message
    path
    isDerived
    usedBy {
      path
      client
      clientVersion
      operations
      lastAt
    }
  }
}`) as unknown as TypedDocumentString<PendingChangesQuery, PendingChangesQueryVariables>;
export const AuditLogDocument = new TypedDocumentString(`
    query AuditLog($filter: AuditFilter, $after: String) {
  auditLog(filter: $filter, after: $after) {
    items {
      ...AuditLine
    }
    next
    storesAway
  }
}
    fragment AuditLine on AuditEntry {
  id
  at
  of
  isReactor
  operation
  from
  to
  fromPosition
  toPosition
  actor
  reason
}`) as unknown as TypedDocumentString<AuditLogQuery, AuditLogQueryVariables>;
export const ReactorDetailDocument = new TypedDocumentString(`
    query ReactorDetail($name: ID!) {
  reactor(name: $name) {
    ...ReactorLine
    versions {
      number
      after
      upTo
      underWay {
        value
        isExact
      }
      isNeeded
    }
    waitingEvents {
      position
      eventType
      streamId
      step
      awaits
      awaitedKey
      due
      since
      isWoken
    }
    actions
  }
}
    fragment ReactorLine on Reactor {
  name
  state
  isDeclared
  owner
  position
  head
  lag
  handled
  skipped
  deadLetters {
    value
    isExact
  }
  waiting {
    value
    isExact
  }
  nextDue
  error {
    message
    at
    code
  }
}`) as unknown as TypedDocumentString<ReactorDetailQuery, ReactorDetailQueryVariables>;
export const ReactorHistoryDocument = new TypedDocumentString(`
    query ReactorHistory($name: ID!, $after: String) {
  reactor(name: $name) {
    name
    history(first: 25, after: $after) {
      items {
        ...AuditLine
      }
      next
    }
  }
}
    fragment AuditLine on AuditEntry {
  id
  at
  of
  isReactor
  operation
  from
  to
  fromPosition
  toPosition
  actor
  reason
}`) as unknown as TypedDocumentString<ReactorHistoryQuery, ReactorHistoryQueryVariables>;
export const DeadLettersDocument = new TypedDocumentString(`
    query DeadLetters($filter: DeadLetterFilter, $after: String) {
  deadLetters(filter: $filter, first: 50, after: $after) {
    items {
      id
      of
      isReactor
      position
      eventType
      streamId
      key
      error {
        message
      }
      attempts
      at
      requested
    }
    next
    storesAway
  }
}
    `) as unknown as TypedDocumentString<DeadLettersQuery, DeadLettersQueryVariables>;
export const DeadLetterDetailDocument = new TypedDocumentString(`
    query DeadLetterDetail($id: ID!, $position: BigInt!, $data: Boolean!) {
  deadLetter(id: $id) {
    error {
      message
      stack
    }
    takenBy
    blocked {
      value
      isExact
    }
  }
  event(position: $position) {
    ...EventLine
    payload @include(if: $data)
    metadata @include(if: $data)
  }
}
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}`) as unknown as TypedDocumentString<DeadLetterDetailQuery, DeadLetterDetailQueryVariables>;
export const DeadLetterGroupsDocument = new TypedDocumentString(`
    query DeadLetterGroups($by: [DeadLetterGrouping!]!, $filter: DeadLetterFilter, $after: String) {
  deadLetterGroups(by: $by, filter: $filter, after: $after) {
    items {
      error
      stack
      eventType
      streamId
      of
      count
      waiting
      firstPosition
      lastAt
    }
    visited
    next
    storesAway
  }
}
    `) as unknown as TypedDocumentString<DeadLetterGroupsQuery, DeadLetterGroupsQueryVariables>;
export const DiscardsDocument = new TypedDocumentString(`
    query Discards($version: ID!, $after: String) {
  discards(version: $version, after: $after) {
    items {
      position
      eventType
      streamId
      key
      actor
      reason
      at
    }
    next
  }
}
    `) as unknown as TypedDocumentString<DiscardsQuery, DiscardsQueryVariables>;
export const EventsDocument = new TypedDocumentString(`
    query Events($filter: EventFilter, $order: EventOrder, $after: String) {
  events(filter: $filter, order: $order, first: 50, after: $after) {
    items {
      ...EventLine
    }
    next
    searchedTo
  }
}
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}`) as unknown as TypedDocumentString<EventsQuery, EventsQueryVariables>;
export const EventsAppendedDocument = new TypedDocumentString(`
    subscription EventsAppended($filter: EventFilter) {
  eventsAppended(filter: $filter) {
    ...EventLine
  }
}
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}`) as unknown as TypedDocumentString<EventsAppendedSubscription, EventsAppendedSubscriptionVariables>;
export const EventDetailDocument = new TypedDocumentString(`
    query EventDetail($position: BigInt!, $data: Boolean!) {
  event(position: $position) {
    ...EventLine
    payload @include(if: $data)
    metadata @include(if: $data)
    rows @include(if: $data) {
      version
      projection
      key
      hasHistory
    }
  }
}
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}`) as unknown as TypedDocumentString<EventDetailQuery, EventDetailQueryVariables>;
export const RowHistoryDocument = new TypedDocumentString(`
    query RowHistory($projection: String!, $key: JSON!, $versions: [Int!], $after: String) {
  rowHistory(
    projection: $projection
    key: $key
    versions: $versions
    first: 100
    after: $after
  ) {
    key
    versions
    columns {
      name
      versions
      isHidden
    }
    items {
      event {
        ...EventLine
        payload
      }
      states {
        version
        outcome
        before
        after
        changed
        message
      }
    }
    next
  }
}
    fragment EventLine on LogEvent {
  position
  id
  family
  streamId
  streamPosition
  type
  payloadVersion
  recordedAt
  correlationId
  causationId
}`) as unknown as TypedDocumentString<RowHistoryQuery, RowHistoryQueryVariables>;
export const RowsDocument = new TypedDocumentString(`
    query Rows($version: ID!, $after: String) {
  version(id: $version) {
    id
    keyColumns
  }
  rows(version: $version, first: 20, after: $after) {
    items {
      key
      row
    }
    next
  }
}
    `) as unknown as TypedDocumentString<RowsQuery, RowsQueryVariables>;
export const MeDocument = new TypedDocumentString(`
    query Me {
  me {
    name
    rights
    process
  }
}
    `) as unknown as TypedDocumentString<MeQuery, MeQueryVariables>;
export const OverviewChangesDocument = new TypedDocumentString(`
    subscription OverviewChanges {
  overviewChanges {
    overview {
      ...OverviewParts
    }
    versions {
      ...VersionLine
    }
    removedVersions
    reactors {
      ...ReactorLine
    }
    removedReactors
  }
}
    fragment OverviewParts on Overview {
  at
  head
  horizon
  stalls {
    position
    pid
    seconds
    text
  }
  viewsBehind
  appendsPerSecond
  versionCount
  health {
    health
    count
  }
  deadLetters {
    value
    isExact
  }
  processes {
    name
    role
    versions
    owns
    startedAt
    heartbeatAt
  }
  lostOwners {
    name
    units
    seconds
  }
  leases {
    store
    unit
    owner
    expiresAt
  }
  connections {
    limit
    used
    groups {
      applicationName
      state
      count
    }
  }
  stores {
    name
    isAway
    versionCount
    lastKnown {
      at
      versions {
        id
        state
        position
      }
    }
    connections {
      limit
      used
      groups {
        applicationName
        state
        count
      }
    }
  }
  answers {
    projection
    version
    canary
    processes
  }
}
fragment VersionLine on Version {
  id
  projection
  number
  store
  state
  health
  isDeclared
  answers
  inline
  unchecked
  position
  head
  lag
  lagEvents {
    value
    isExact
  }
  lagSeconds
  progress
  eventsPerSecond
  etaSeconds
  owner
  heldReason
  error {
    message
  }
  paused {
    by
    reason
  }
  canary {
    text
  }
  rebuild {
    form
    progress
  }
  deadLetters {
    value
    isExact
  }
}
fragment ReactorLine on Reactor {
  name
  state
  isDeclared
  owner
  position
  head
  lag
  handled
  skipped
  deadLetters {
    value
    isExact
  }
  waiting {
    value
    isExact
  }
  nextDue
  error {
    message
    at
    code
  }
}`) as unknown as TypedDocumentString<OverviewChangesSubscription, OverviewChangesSubscriptionVariables>;
export const LagTrendsDocument = new TypedDocumentString(`
    query LagTrends($first: Int!) {
  versions(first: $first) {
    items {
      id
      lagTrend {
        at
        lag
      }
    }
  }
}
    `) as unknown as TypedDocumentString<LagTrendsQuery, LagTrendsQueryVariables>;
export const VersionDetailDocument = new TypedDocumentString(`
    query VersionDetail($id: ID!) {
  version(id: $id) {
    ...VersionLine
    startsAfter
    eventsFolded
    eventsSkipped
    retries
    retrying {
      position
      attempts
      message
      nextAt
    }
    partitions {
      number
      processor
      owner
      position
      lag
      error {
        message
        at
      }
    }
    error {
      message
      at
      code
    }
    paused {
      by
      reason
      since
    }
    canary {
      percent
      header
      headerValue
      text
      operations
      errors
      otherOperations
      otherErrors
    }
    shadow {
      oneOf
      startedAt
      stoppedAt
      same
      different
      failed
      skipped
      examples {
        operation
        path
        times
        older
        newer
        seenAt
      }
    }
    rebuild {
      form
      position
      startedAtPosition
      snapshot
      progress
      eventsPerSecond
      etaSeconds
      requestedBy
      reason
      owner
      heldReason
      error {
        message
        at
      }
    }
    verification {
      kind
      endedAt
      position
      rowsCompared
      differences
      samples {
        key
        kind
        columns
      }
      foundAt
    }
    missingIndexes
    lagTrend(minutes: 60, points: 60) {
      at
      lag
    }
    snapshots {
      id
      position
      takenAt
    }
    actions
  }
}
    fragment VersionLine on Version {
  id
  projection
  number
  store
  state
  health
  isDeclared
  answers
  inline
  unchecked
  position
  head
  lag
  lagEvents {
    value
    isExact
  }
  lagSeconds
  progress
  eventsPerSecond
  etaSeconds
  owner
  heldReason
  error {
    message
  }
  paused {
    by
    reason
  }
  canary {
    text
  }
  rebuild {
    form
    progress
  }
  deadLetters {
    value
    isExact
  }
}`) as unknown as TypedDocumentString<VersionDetailQuery, VersionDetailQueryVariables>;
export const VersionHistoryDocument = new TypedDocumentString(`
    query VersionHistory($id: ID!, $after: String) {
  version(id: $id) {
    id
    history(first: 25, after: $after) {
      items {
        ...AuditLine
      }
      next
      storesAway
    }
  }
}
    fragment AuditLine on AuditEntry {
  id
  at
  of
  isReactor
  operation
  from
  to
  fromPosition
  toPosition
  actor
  reason
}`) as unknown as TypedDocumentString<VersionHistoryQuery, VersionHistoryQueryVariables>;
export const VersionRunsDocument = new TypedDocumentString(`
    query VersionRuns($id: ID!, $after: String) {
  version(id: $id) {
    id
    runs(first: 50, after: $after) {
      items {
        kind
        partition
        startedAt
        endedAt
        fromPosition
        toPosition
        batches
        events
        rows
        busyMs
      }
      next
    }
  }
}
    `) as unknown as TypedDocumentString<VersionRunsQuery, VersionRunsQueryVariables>;
export const VersionTableDocument = new TypedDocumentString(`
    query VersionTable($id: ID!) {
  version(id: $id) {
    id
    actions
    missingIndexes
    table {
      schema
      name
      rows
      bytes
      indexBytes
      indexes {
        name
        definition
        bytes
        scans
        isValid
      }
    }
    columns {
      name
      type
      isKey
      isHidden
    }
    snapshots {
      id
      position
      rows
      bytes
      deadLetters
      automatic
      isOfThisCode
      takenAt
      actor
      reason
    }
  }
}
    `) as unknown as TypedDocumentString<VersionTableQuery, VersionTableQueryVariables>;
export const VersionClientsDocument = new TypedDocumentString(`
    query VersionClients($id: ID!) {
  version(id: $id) {
    id
    pins {
      client
      clientVersion
      operations
      lastAt
    }
  }
}
    `) as unknown as TypedDocumentString<VersionClientsQuery, VersionClientsQueryVariables>;
export const VersionSchemaChangesDocument = new TypedDocumentString(`
    query VersionSchemaChanges($id: ID!) {
  schemaChanges(version: $id) {
    ...SchemaChangeList
  }
}
    fragment SchemaChangeList on SchemaChanges {
  version
  than
  breakingCount
  days
  recordedDays
  changes {
    criticality
    message
    path
    isDerived
    usedBy {
      path
      client
      clientVersion
      operations
      lastAt
    }
  }
}`) as unknown as TypedDocumentString<VersionSchemaChangesQuery, VersionSchemaChangesQueryVariables>;
export const DiffDocument = new TypedDocumentString(`
    query Diff($older: ID!, $newer: ID!) {
  diff(older: $older, newer: $newer) {
    older
    newer
    position
    rows
    onlyOlder
    onlyNewer
    columns {
      name
      rows
    }
    samples {
      key
      older
      newer
    }
  }
}
    `) as unknown as TypedDocumentString<DiffQuery, DiffQueryVariables>;
export const VerifyDocument = new TypedDocumentString(`
    subscription Verify($version: ID!, $oneOf: Int!) {
  verify(version: $version, oneOf: $oneOf) {
    position
    of
    result {
      position
      rowsCompared
      differences
      samples {
        key
        kind
        columns
      }
    }
  }
}
    `) as unknown as TypedDocumentString<VerifySubscription, VerifySubscriptionVariables>;