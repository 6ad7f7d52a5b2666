export type Maybe<T> = T | null | undefined;
export type InputMaybe<T> = T | null | undefined;
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  BigInt: { input: string; output: bigint | number | string; }
  DateTime: { input: string; output: string; }
  JSON: { input: unknown; output: unknown; }
};

export type ActionInput =
  { readonly acceptRebuild: VersionInput; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate: ActivateInput; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild: VersionInput; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent: ReactorPositionInput; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters: DeadLettersInput; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot: SnapshotInput; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary: EndCanaryInput; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor: ReactorInput; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause: VersionInput; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor: ReactorInput; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild: RebuildInput; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards: RecallInput; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot: SnapshotInput; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume: VersionInput; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor: ReactorInput; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire: RetireInput; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters: DeadLettersInput; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor: ReactorPositionInput; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback: RollbackInput; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor: ReactorPositionInput; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary: StartCanaryInput; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow: StartShadowInput; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow: VersionInput; readonly takeSnapshot?: never; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot: VersionInput; readonly withdrawReactorVersion?: never; }
  |  { readonly acceptRebuild?: never; readonly activate?: never; readonly cancelRebuild?: never; readonly cancelWaitingEvent?: never; readonly discardDeadLetters?: never; readonly dropSnapshot?: never; readonly endCanary?: never; readonly forgetReactor?: never; readonly pause?: never; readonly pauseReactor?: never; readonly rebuild?: never; readonly recallDiscards?: never; readonly restoreSnapshot?: never; readonly resume?: never; readonly resumeReactor?: never; readonly retire?: never; readonly retryDeadLetters?: never; readonly rewindReactor?: never; readonly rollback?: never; readonly skipReactor?: never; readonly startCanary?: never; readonly startShadow?: never; readonly stopShadow?: never; readonly takeSnapshot?: never; readonly withdrawReactorVersion: ReactorVersionInput; };

export type ActionName =
  | 'acceptRebuild'
  | 'activate'
  | 'cancelRebuild'
  | 'cancelWaitingEvent'
  | 'discardDeadLetters'
  | 'dropSnapshot'
  | 'endCanary'
  | 'forgetReactor'
  | 'pause'
  | 'pauseReactor'
  | 'rebuild'
  | 'recallDiscards'
  | 'restoreSnapshot'
  | 'resume'
  | 'resumeReactor'
  | 'retire'
  | 'retryDeadLetters'
  | 'rewindReactor'
  | 'rollback'
  | 'skipReactor'
  | 'startCanary'
  | 'startShadow'
  | 'stopShadow'
  | 'takeSnapshot'
  | 'withdrawReactorVersion';

export type ActivateInput = {
  readonly allowBreaking?: InputMaybe<Scalars['Boolean']['input']>;
  readonly along?: ReadonlyArray<Scalars['ID']['input']>;
  readonly version: Scalars['ID']['input'];
};

export type Answer = {
  readonly __typename: 'Answer';
  readonly canary: Maybe<Scalars['ID']['output']>;
  readonly processes: ReadonlyArray<Scalars['String']['output']>;
  readonly projection: Scalars['String']['output'];
  readonly version: Maybe<Scalars['ID']['output']>;
};

export type AuditEntry = {
  readonly __typename: 'AuditEntry';
  readonly actor: Scalars['String']['output'];
  readonly at: Scalars['DateTime']['output'];
  readonly from: Maybe<VersionState>;
  readonly fromPosition: Maybe<Scalars['BigInt']['output']>;
  readonly id: Scalars['ID']['output'];
  readonly isReactor: Scalars['Boolean']['output'];
  readonly of: Scalars['ID']['output'];
  readonly operation: Scalars['String']['output'];
  readonly reason: Scalars['String']['output'];
  readonly store: Scalars['String']['output'];
  readonly to: Maybe<VersionState>;
  readonly toPosition: Maybe<Scalars['BigInt']['output']>;
};

export type AuditFilter = {
  readonly actor?: InputMaybe<Scalars['String']['input']>;
  readonly projection?: InputMaybe<Scalars['String']['input']>;
  readonly reactor?: InputMaybe<Scalars['String']['input']>;
  readonly since?: InputMaybe<Scalars['DateTime']['input']>;
  readonly until?: InputMaybe<Scalars['DateTime']['input']>;
  readonly version?: InputMaybe<Scalars['Int']['input']>;
};

export type AuditPage = {
  readonly __typename: 'AuditPage';
  readonly items: ReadonlyArray<AuditEntry>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly storesAway: ReadonlyArray<Scalars['String']['output']>;
};

export type Caller = {
  readonly __typename: 'Caller';
  readonly name: Scalars['String']['output'];
  readonly process: Scalars['String']['output'];
  readonly rights: ReadonlyArray<Right>;
};

export type Canary = {
  readonly __typename: 'Canary';
  readonly errors: Scalars['Int']['output'];
  readonly header: Maybe<Scalars['String']['output']>;
  readonly headerValue: Maybe<Scalars['String']['output']>;
  readonly operations: Scalars['Int']['output'];
  readonly otherErrors: Scalars['Int']['output'];
  readonly otherOperations: Scalars['Int']['output'];
  readonly percent: Scalars['Float']['output'];
  readonly text: Scalars['String']['output'];
};

export type Client = {
  readonly __typename: 'Client';
  readonly fields: Count;
  readonly lastAt: Scalars['DateTime']['output'];
  readonly name: Scalars['String']['output'];
  readonly operations: Scalars['Int']['output'];
  readonly pins: ReadonlyArray<Scalars['ID']['output']>;
  readonly version: Scalars['String']['output'];
};

export type ClientPage = {
  readonly __typename: 'ClientPage';
  readonly items: ReadonlyArray<Client>;
  readonly next: Maybe<Scalars['String']['output']>;
};

export type Column = {
  readonly __typename: 'Column';
  readonly isHidden: Scalars['Boolean']['output'];
  readonly isKey: Scalars['Boolean']['output'];
  readonly name: Scalars['String']['output'];
  readonly type: Scalars['String']['output'];
};

export type ColumnDiff = {
  readonly __typename: 'ColumnDiff';
  readonly name: Scalars['String']['output'];
  readonly rows: Scalars['BigInt']['output'];
};

export type ConnectionGroup = {
  readonly __typename: 'ConnectionGroup';
  readonly applicationName: Scalars['String']['output'];
  readonly count: Scalars['Int']['output'];
  readonly state: Scalars['String']['output'];
};

export type Connections = {
  readonly __typename: 'Connections';
  readonly groups: ReadonlyArray<ConnectionGroup>;
  readonly limit: Scalars['Int']['output'];
  readonly used: Scalars['Int']['output'];
};

export type Count = {
  readonly __typename: 'Count';
  readonly isExact: Scalars['Boolean']['output'];
  readonly value: Scalars['Int']['output'];
};

export type Criticality =
  | 'breaking'
  | 'dangerous'
  | 'safe';

export type DeadLetter = {
  readonly __typename: 'DeadLetter';
  readonly at: Scalars['DateTime']['output'];
  readonly attempts: Scalars['Int']['output'];
  readonly blocked: Count;
  readonly error: Maybe<LetterError>;
  readonly event: Maybe<LogEvent>;
  readonly eventType: Scalars['String']['output'];
  readonly id: Scalars['ID']['output'];
  readonly isReactor: Scalars['Boolean']['output'];
  readonly key: Maybe<Scalars['JSON']['output']>;
  readonly of: Scalars['ID']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly requested: Maybe<Scalars['String']['output']>;
  readonly streamId: Scalars['String']['output'];
  readonly takenBy: Maybe<ReadonlyArray<Scalars['JSON']['output']>>;
};

export type DeadLetterFilter = {
  readonly error?: InputMaybe<Scalars['String']['input']>;
  readonly eventType?: InputMaybe<Scalars['String']['input']>;
  readonly failed?: InputMaybe<Scalars['Boolean']['input']>;
  readonly of?: InputMaybe<Scalars['ID']['input']>;
  readonly stack?: InputMaybe<Scalars['String']['input']>;
  readonly streamId?: InputMaybe<Scalars['String']['input']>;
};

export type DeadLetterGroup = {
  readonly __typename: 'DeadLetterGroup';
  readonly count: Scalars['Int']['output'];
  readonly error: Maybe<Scalars['String']['output']>;
  readonly eventType: Maybe<Scalars['String']['output']>;
  readonly firstPosition: Scalars['BigInt']['output'];
  readonly lastAt: Scalars['DateTime']['output'];
  readonly of: Maybe<Scalars['ID']['output']>;
  readonly stack: Maybe<Scalars['String']['output']>;
  readonly streamId: Maybe<Scalars['String']['output']>;
  readonly waiting: Scalars['Int']['output'];
};

export type DeadLetterGrouping =
  | 'error'
  | 'event'
  | 'of'
  | 'stack'
  | 'stream';

export type DeadLetterGroups = {
  readonly __typename: 'DeadLetterGroups';
  readonly items: ReadonlyArray<DeadLetterGroup>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly storesAway: ReadonlyArray<Scalars['String']['output']>;
  readonly visited: Scalars['Int']['output'];
};

export type DeadLetterPage = {
  readonly __typename: 'DeadLetterPage';
  readonly items: ReadonlyArray<DeadLetter>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly storesAway: ReadonlyArray<Scalars['String']['output']>;
};

export type DeadLettersInput = {
  readonly after?: InputMaybe<Scalars['String']['input']>;
  readonly filter?: InputMaybe<DeadLetterFilter>;
  readonly ids?: InputMaybe<ReadonlyArray<Scalars['ID']['input']>>;
};

export type Difference = {
  readonly __typename: 'Difference';
  readonly columns: ReadonlyArray<Scalars['String']['output']>;
  readonly key: Scalars['String']['output'];
  readonly kind: Scalars['String']['output'];
};

export type Discard = {
  readonly __typename: 'Discard';
  readonly actor: Scalars['String']['output'];
  readonly at: Scalars['DateTime']['output'];
  readonly eventType: Scalars['String']['output'];
  readonly key: Maybe<Scalars['JSON']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly reason: Scalars['String']['output'];
  readonly streamId: Scalars['String']['output'];
};

export type DiscardPage = {
  readonly __typename: 'DiscardPage';
  readonly items: ReadonlyArray<Discard>;
  readonly next: Maybe<Scalars['String']['output']>;
};

export type EndCanaryInput = {
  readonly projection: Scalars['String']['input'];
};

export type EventFilter = {
  readonly afterPosition?: InputMaybe<Scalars['BigInt']['input']>;
  readonly correlationId?: InputMaybe<Scalars['String']['input']>;
  readonly family?: InputMaybe<Scalars['String']['input']>;
  readonly since?: InputMaybe<Scalars['DateTime']['input']>;
  readonly streamId?: InputMaybe<Scalars['String']['input']>;
  readonly types?: InputMaybe<ReadonlyArray<Scalars['String']['input']>>;
  readonly until?: InputMaybe<Scalars['DateTime']['input']>;
  readonly upToPosition?: InputMaybe<Scalars['BigInt']['input']>;
};

export type EventOrder =
  | 'newestFirst'
  | 'oldestFirst';

export type EventPage = {
  readonly __typename: 'EventPage';
  readonly items: ReadonlyArray<LogEvent>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly searchedTo: Maybe<Scalars['BigInt']['output']>;
};

export type FieldUsage = {
  readonly __typename: 'FieldUsage';
  readonly client: Scalars['String']['output'];
  readonly clientVersion: Scalars['String']['output'];
  readonly lastAt: Scalars['DateTime']['output'];
  readonly operations: Scalars['Int']['output'];
  readonly path: Scalars['String']['output'];
  readonly pins: ReadonlyArray<Scalars['ID']['output']>;
};

export type FieldUsagePage = {
  readonly __typename: 'FieldUsagePage';
  readonly items: ReadonlyArray<FieldUsage>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly recordedDays: Maybe<Scalars['Float']['output']>;
};

export type Health =
  | 'behind'
  | 'building'
  | 'current'
  | 'held'
  | 'paused'
  | 'retired'
  | 'stalled'
  | 'stopped'
  | 'unchecked'
  | 'unowned';

export type HealthCount = {
  readonly __typename: 'HealthCount';
  readonly count: Scalars['Int']['output'];
  readonly health: Health;
};

export type Index = {
  readonly __typename: 'Index';
  readonly bytes: Scalars['BigInt']['output'];
  readonly definition: Scalars['String']['output'];
  readonly isValid: Scalars['Boolean']['output'];
  readonly name: Scalars['String']['output'];
  readonly scans: Scalars['BigInt']['output'];
};

export type KnownVersion = {
  readonly __typename: 'KnownVersion';
  readonly id: Scalars['ID']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly state: VersionState;
};

export type KnownVersions = {
  readonly __typename: 'KnownVersions';
  readonly at: Scalars['DateTime']['output'];
  readonly versions: ReadonlyArray<KnownVersion>;
};

export type LagPoint = {
  readonly __typename: 'LagPoint';
  readonly at: Scalars['DateTime']['output'];
  readonly lag: Scalars['BigInt']['output'];
};

export type Lease = {
  readonly __typename: 'Lease';
  readonly expiresAt: Scalars['DateTime']['output'];
  readonly owner: Maybe<Scalars['String']['output']>;
  readonly store: Scalars['String']['output'];
  readonly unit: Scalars['String']['output'];
};

export type LetterError = {
  readonly __typename: 'LetterError';
  readonly message: Scalars['String']['output'];
  readonly stack: Maybe<Scalars['String']['output']>;
};

export type LogEvent = {
  readonly __typename: 'LogEvent';
  readonly causationId: Maybe<Scalars['String']['output']>;
  readonly correlationId: Maybe<Scalars['String']['output']>;
  readonly family: Scalars['String']['output'];
  readonly id: Scalars['ID']['output'];
  readonly metadata: Maybe<Scalars['JSON']['output']>;
  readonly payload: Maybe<Scalars['JSON']['output']>;
  readonly payloadVersion: Scalars['Int']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly recordedAt: Scalars['DateTime']['output'];
  readonly rows: ReadonlyArray<TouchedRow>;
  readonly streamId: Scalars['String']['output'];
  readonly streamPosition: Scalars['BigInt']['output'];
  readonly type: Scalars['String']['output'];
};

export type LostOwner = {
  readonly __typename: 'LostOwner';
  readonly name: Scalars['String']['output'];
  readonly seconds: Maybe<Scalars['Float']['output']>;
  readonly store: Scalars['String']['output'];
  readonly units: Scalars['Int']['output'];
};

export type Mutation = {
  readonly __typename: 'Mutation';
  readonly run: Outcome;
};


export type MutationRunArgs = {
  action: ActionInput;
  digest: Scalars['String']['input'];
  reason: Scalars['String']['input'];
};

export type Outcome = {
  readonly __typename: 'Outcome';
  readonly action: ActionName;
  readonly continues: Scalars['Boolean']['output'];
  readonly discarded: Maybe<Scalars['Int']['output']>;
  readonly folded: Maybe<Scalars['Int']['output']>;
  readonly left: Maybe<Scalars['Int']['output']>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly reactor: Maybe<Reactor>;
  readonly summary: Scalars['String']['output'];
  readonly version: Maybe<Version>;
};

export type Overview = {
  readonly __typename: 'Overview';
  readonly answers: ReadonlyArray<Answer>;
  readonly appendsPerSecond: Scalars['Float']['output'];
  readonly at: Scalars['DateTime']['output'];
  readonly connections: Connections;
  readonly deadLetters: Count;
  readonly head: Scalars['BigInt']['output'];
  readonly health: ReadonlyArray<HealthCount>;
  readonly horizon: Scalars['BigInt']['output'];
  readonly leases: ReadonlyArray<Lease>;
  readonly lostOwners: ReadonlyArray<LostOwner>;
  readonly notRegistered: ReadonlyArray<Scalars['ID']['output']>;
  readonly processes: ReadonlyArray<Process>;
  readonly stalls: ReadonlyArray<Stall>;
  readonly stores: ReadonlyArray<Store>;
  readonly versionCount: Scalars['Int']['output'];
  readonly viewsBehind: ReadonlyArray<Scalars['String']['output']>;
};

export type OverviewChange = {
  readonly __typename: 'OverviewChange';
  readonly overview: Overview;
  readonly reactors: ReadonlyArray<Reactor>;
  readonly removedReactors: ReadonlyArray<Scalars['ID']['output']>;
  readonly removedVersions: ReadonlyArray<Scalars['ID']['output']>;
  readonly versions: ReadonlyArray<Version>;
};

export type Partition = {
  readonly __typename: 'Partition';
  readonly error: Maybe<ProcessorError>;
  readonly lag: Scalars['BigInt']['output'];
  readonly number: Scalars['Int']['output'];
  readonly owner: Maybe<Scalars['String']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly processor: Scalars['String']['output'];
};

export type Pause = {
  readonly __typename: 'Pause';
  readonly by: Scalars['String']['output'];
  readonly reason: Scalars['String']['output'];
  readonly since: Scalars['DateTime']['output'];
};

export type PayloadProblem = {
  readonly __typename: 'PayloadProblem';
  readonly family: Scalars['String']['output'];
  readonly payloadVersion: Scalars['Int']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly problem: Scalars['String']['output'];
  readonly streamId: Scalars['String']['output'];
  readonly type: Scalars['String']['output'];
};

export type PayloadVerification = {
  readonly __typename: 'PayloadVerification';
  readonly events: Scalars['Int']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly problems: Scalars['Int']['output'];
  readonly samples: ReadonlyArray<PayloadProblem>;
};

export type PayloadVerificationProgress = {
  readonly __typename: 'PayloadVerificationProgress';
  readonly of: Scalars['BigInt']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly result: Maybe<PayloadVerification>;
};

export type Pin = {
  readonly __typename: 'Pin';
  readonly client: Scalars['String']['output'];
  readonly clientVersion: Scalars['String']['output'];
  readonly lastAt: Scalars['DateTime']['output'];
  readonly operations: Scalars['Int']['output'];
};

export type Preview = {
  readonly __typename: 'Preview';
  readonly action: ActionName;
  readonly concerns: Maybe<Count>;
  readonly details: ReadonlyArray<Scalars['String']['output']>;
  readonly digest: Maybe<Scalars['String']['output']>;
  readonly isAllowed: Scalars['Boolean']['output'];
  readonly of: Maybe<Scalars['ID']['output']>;
  readonly overcomeBy: ReadonlyArray<Scalars['String']['output']>;
  readonly refusal: Maybe<Scalars['String']['output']>;
  readonly right: Right;
  readonly summary: Scalars['String']['output'];
  readonly warnings: ReadonlyArray<Scalars['String']['output']>;
};

export type Process = {
  readonly __typename: 'Process';
  readonly heartbeatAt: Scalars['DateTime']['output'];
  readonly name: Scalars['String']['output'];
  readonly owns: ReadonlyArray<Scalars['String']['output']>;
  readonly role: Maybe<Scalars['String']['output']>;
  readonly startedAt: Scalars['DateTime']['output'];
  readonly versions: ReadonlyArray<Scalars['ID']['output']>;
};

export type ProcessorError = {
  readonly __typename: 'ProcessorError';
  readonly at: Scalars['DateTime']['output'];
  readonly code: Maybe<Scalars['String']['output']>;
  readonly message: Scalars['String']['output'];
};

export type Query = {
  readonly __typename: 'Query';
  readonly auditLog: AuditPage;
  readonly clients: ClientPage;
  readonly deadLetter: Maybe<DeadLetter>;
  readonly deadLetterGroups: DeadLetterGroups;
  readonly deadLetters: DeadLetterPage;
  readonly diff: VersionDiff;
  readonly discards: DiscardPage;
  readonly event: Maybe<LogEvent>;
  readonly events: EventPage;
  readonly fieldUsage: FieldUsagePage;
  readonly me: Caller;
  readonly overview: Overview;
  readonly pendingChanges: ReadonlyArray<SchemaChanges>;
  readonly preview: Preview;
  readonly reactor: Maybe<Reactor>;
  readonly reactors: ReadonlyArray<Reactor>;
  readonly rowHistory: RowHistory;
  readonly rows: RowPage;
  readonly schemaChanges: SchemaChanges;
  readonly version: Maybe<Version>;
  readonly versions: VersionPage;
};


export type QueryAuditLogArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  filter?: InputMaybe<AuditFilter>;
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type QueryClientsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  days?: InputMaybe<Scalars['Int']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type QueryDeadLetterArgs = {
  id: Scalars['ID']['input'];
};


export type QueryDeadLetterGroupsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  by: ReadonlyArray<DeadLetterGrouping>;
  filter?: InputMaybe<DeadLetterFilter>;
};


export type QueryDeadLettersArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  filter?: InputMaybe<DeadLetterFilter>;
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type QueryDiffArgs = {
  newer: Scalars['ID']['input'];
  older: Scalars['ID']['input'];
};


export type QueryDiscardsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  version: Scalars['ID']['input'];
};


export type QueryEventArgs = {
  position: Scalars['BigInt']['input'];
};


export type QueryEventsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  filter?: InputMaybe<EventFilter>;
  first?: InputMaybe<Scalars['Int']['input']>;
  order?: InputMaybe<EventOrder>;
};


export type QueryFieldUsageArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  client?: InputMaybe<Scalars['String']['input']>;
  days?: InputMaybe<Scalars['Int']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  path?: InputMaybe<Scalars['String']['input']>;
};


export type QueryPreviewArgs = {
  action: ActionInput;
};


export type QueryReactorArgs = {
  name: Scalars['ID']['input'];
};


export type QueryRowHistoryArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  key: Scalars['JSON']['input'];
  projection: Scalars['String']['input'];
  versions?: InputMaybe<ReadonlyArray<Scalars['Int']['input']>>;
};


export type QueryRowsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  version: Scalars['ID']['input'];
};


export type QuerySchemaChangesArgs = {
  than?: InputMaybe<Scalars['ID']['input']>;
  version: Scalars['ID']['input'];
};


export type QueryVersionArgs = {
  id: Scalars['ID']['input'];
};


export type QueryVersionsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  health?: InputMaybe<ReadonlyArray<Health>>;
  search?: InputMaybe<Scalars['String']['input']>;
};

export type Reactor = {
  readonly __typename: 'Reactor';
  readonly actions: ReadonlyArray<ActionName>;
  readonly deadLetters: Count;
  readonly error: Maybe<ProcessorError>;
  readonly handled: Scalars['BigInt']['output'];
  readonly head: Scalars['BigInt']['output'];
  readonly history: AuditPage;
  readonly isDeclared: Scalars['Boolean']['output'];
  readonly lag: Scalars['BigInt']['output'];
  readonly name: Scalars['ID']['output'];
  readonly nextDue: Maybe<Scalars['DateTime']['output']>;
  readonly owner: Maybe<Scalars['String']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly skipped: Scalars['BigInt']['output'];
  readonly state: Scalars['String']['output'];
  readonly versions: ReadonlyArray<ReactorVersion>;
  readonly waiting: Count;
  readonly waitingEvents: ReadonlyArray<WaitingEvent>;
};


export type ReactorHistoryArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};

export type ReactorInput = {
  readonly reactor: Scalars['ID']['input'];
};

export type ReactorPositionInput = {
  readonly position: Scalars['BigInt']['input'];
  readonly reactor: Scalars['ID']['input'];
};

export type ReactorVersion = {
  readonly __typename: 'ReactorVersion';
  readonly after: Scalars['BigInt']['output'];
  readonly isNeeded: Scalars['Boolean']['output'];
  readonly number: Scalars['Int']['output'];
  readonly underWay: Count;
  readonly upTo: Maybe<Scalars['BigInt']['output']>;
};

export type ReactorVersionInput = {
  readonly reactor: Scalars['ID']['input'];
  readonly version: Scalars['Int']['input'];
};

export type Rebuild = {
  readonly __typename: 'Rebuild';
  readonly error: Maybe<ProcessorError>;
  readonly etaSeconds: Maybe<Scalars['Float']['output']>;
  readonly eventsPerSecond: Scalars['Float']['output'];
  readonly form: Scalars['String']['output'];
  readonly heldReason: Maybe<Scalars['String']['output']>;
  readonly owner: Maybe<Scalars['String']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly progress: Scalars['Float']['output'];
  readonly reason: Scalars['String']['output'];
  readonly requestedBy: Scalars['String']['output'];
  readonly snapshot: Maybe<Scalars['BigInt']['output']>;
  readonly startedAtPosition: Scalars['BigInt']['output'];
};

export type RebuildInput = {
  readonly fromPosition?: InputMaybe<Scalars['BigInt']['input']>;
  readonly fromSnapshot?: InputMaybe<Scalars['BigInt']['input']>;
  readonly inPlace?: InputMaybe<Scalars['Boolean']['input']>;
  readonly version: Scalars['ID']['input'];
};

export type RecallInput = {
  readonly key?: InputMaybe<Scalars['JSON']['input']>;
  readonly version: Scalars['ID']['input'];
};

export type RetireInput = {
  readonly allowLoss?: InputMaybe<Scalars['Boolean']['input']>;
  readonly force?: InputMaybe<Scalars['Boolean']['input']>;
  readonly graceHours?: InputMaybe<Scalars['Float']['input']>;
  readonly version: Scalars['ID']['input'];
};

export type Retrying = {
  readonly __typename: 'Retrying';
  readonly attempts: Scalars['Int']['output'];
  readonly message: Scalars['String']['output'];
  readonly nextAt: Scalars['DateTime']['output'];
  readonly position: Scalars['BigInt']['output'];
};

export type Right =
  | 'activate'
  | 'canary'
  | 'data'
  | 'discardDeadLetters'
  | 'pause'
  | 'reactors'
  | 'read'
  | 'rebuild'
  | 'retire'
  | 'retryDeadLetters'
  | 'rollback'
  | 'shadow'
  | 'snapshot'
  | 'verify';

export type RollbackInput = {
  readonly projection: Scalars['String']['input'];
  readonly version?: InputMaybe<Scalars['Int']['input']>;
};

export type RowDiff = {
  readonly __typename: 'RowDiff';
  readonly key: Scalars['JSON']['output'];
  readonly newer: Maybe<Scalars['JSON']['output']>;
  readonly older: Maybe<Scalars['JSON']['output']>;
};

export type RowHistory = {
  readonly __typename: 'RowHistory';
  readonly columns: ReadonlyArray<StepperColumn>;
  readonly items: ReadonlyArray<RowStep>;
  readonly key: Scalars['JSON']['output'];
  readonly next: Maybe<Scalars['String']['output']>;
  readonly versions: ReadonlyArray<Scalars['ID']['output']>;
};

export type RowPage = {
  readonly __typename: 'RowPage';
  readonly items: ReadonlyArray<RowSummary>;
  readonly next: Maybe<Scalars['String']['output']>;
};

export type RowState = {
  readonly __typename: 'RowState';
  readonly after: Maybe<Scalars['JSON']['output']>;
  readonly before: Maybe<Scalars['JSON']['output']>;
  readonly changed: ReadonlyArray<Scalars['String']['output']>;
  readonly message: Maybe<Scalars['String']['output']>;
  readonly outcome: StepOutcome;
  readonly version: Scalars['ID']['output'];
};

export type RowStep = {
  readonly __typename: 'RowStep';
  readonly event: LogEvent;
  readonly states: ReadonlyArray<RowState>;
};

export type RowSummary = {
  readonly __typename: 'RowSummary';
  readonly key: Scalars['JSON']['output'];
  readonly row: Scalars['JSON']['output'];
};

export type Run = {
  readonly __typename: 'Run';
  readonly batches: Scalars['Int']['output'];
  readonly busyMs: Scalars['BigInt']['output'];
  readonly endedAt: Scalars['DateTime']['output'];
  readonly events: Scalars['BigInt']['output'];
  readonly fromPosition: Scalars['BigInt']['output'];
  readonly kind: Scalars['String']['output'];
  readonly partition: Scalars['Int']['output'];
  readonly rows: Scalars['BigInt']['output'];
  readonly startedAt: Scalars['DateTime']['output'];
  readonly toPosition: Scalars['BigInt']['output'];
};

export type RunPage = {
  readonly __typename: 'RunPage';
  readonly items: ReadonlyArray<Run>;
  readonly next: Maybe<Scalars['String']['output']>;
};

export type SchemaChange = {
  readonly __typename: 'SchemaChange';
  readonly criticality: Criticality;
  readonly isDerived: Scalars['Boolean']['output'];
  readonly message: Scalars['String']['output'];
  readonly path: Maybe<Scalars['String']['output']>;
  readonly usedBy: ReadonlyArray<FieldUsage>;
};

export type SchemaChanges = {
  readonly __typename: 'SchemaChanges';
  readonly breakingCount: Scalars['Int']['output'];
  readonly changes: ReadonlyArray<SchemaChange>;
  readonly days: Scalars['Int']['output'];
  readonly recordedDays: Maybe<Scalars['Float']['output']>;
  readonly than: Scalars['ID']['output'];
  readonly version: Scalars['ID']['output'];
};

export type Shadow = {
  readonly __typename: 'Shadow';
  readonly different: Scalars['Int']['output'];
  readonly examples: ReadonlyArray<ShadowExample>;
  readonly failed: Scalars['Int']['output'];
  readonly oneOf: Scalars['Int']['output'];
  readonly same: Scalars['Int']['output'];
  readonly skipped: Scalars['Int']['output'];
  readonly startedAt: Scalars['DateTime']['output'];
  readonly stoppedAt: Maybe<Scalars['DateTime']['output']>;
};

export type ShadowExample = {
  readonly __typename: 'ShadowExample';
  readonly newer: Maybe<Scalars['String']['output']>;
  readonly older: Maybe<Scalars['String']['output']>;
  readonly operation: Scalars['String']['output'];
  readonly path: Scalars['String']['output'];
  readonly seenAt: Scalars['DateTime']['output'];
  readonly times: Scalars['Int']['output'];
};

export type Snapshot = {
  readonly __typename: 'Snapshot';
  readonly actor: Scalars['String']['output'];
  readonly automatic: Scalars['Boolean']['output'];
  readonly bytes: Scalars['BigInt']['output'];
  readonly deadLetters: Scalars['Int']['output'];
  readonly id: Scalars['BigInt']['output'];
  readonly isOfThisCode: Scalars['Boolean']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly reason: Scalars['String']['output'];
  readonly rows: Scalars['BigInt']['output'];
  readonly takenAt: Scalars['DateTime']['output'];
};

export type SnapshotInput = {
  readonly snapshot: Scalars['BigInt']['input'];
  readonly version: Scalars['ID']['input'];
};

export type Stall = {
  readonly __typename: 'Stall';
  readonly applicationName: Scalars['String']['output'];
  readonly clientAddress: Maybe<Scalars['String']['output']>;
  readonly pid: Maybe<Scalars['Int']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly query: Maybe<Scalars['String']['output']>;
  readonly role: Maybe<Scalars['String']['output']>;
  readonly seconds: Scalars['Float']['output'];
  readonly state: Scalars['String']['output'];
  readonly text: Scalars['String']['output'];
};

export type StartCanaryInput = {
  readonly allowBreaking?: InputMaybe<Scalars['Boolean']['input']>;
  readonly header?: InputMaybe<Scalars['String']['input']>;
  readonly headerValue?: InputMaybe<Scalars['String']['input']>;
  readonly percent?: InputMaybe<Scalars['Float']['input']>;
  readonly version: Scalars['ID']['input'];
};

export type StartShadowInput = {
  readonly oneOf: Scalars['Int']['input'];
  readonly version: Scalars['ID']['input'];
};

export type StepOutcome =
  | 'failed'
  | 'folded'
  | 'ignored'
  | 'leftOut';

export type StepperColumn = {
  readonly __typename: 'StepperColumn';
  readonly isHidden: Scalars['Boolean']['output'];
  readonly name: Scalars['String']['output'];
  readonly versions: ReadonlyArray<Scalars['ID']['output']>;
};

export type Store = {
  readonly __typename: 'Store';
  readonly connections: Maybe<Connections>;
  readonly isAway: Scalars['Boolean']['output'];
  readonly lastKnown: Maybe<KnownVersions>;
  readonly name: Scalars['ID']['output'];
  readonly versionCount: Scalars['Int']['output'];
};

export type Subscription = {
  readonly __typename: 'Subscription';
  readonly eventsAppended: ReadonlyArray<LogEvent>;
  readonly overviewChanges: OverviewChange;
  readonly verify: VerificationProgress;
  readonly verifyPayloads: PayloadVerificationProgress;
};


export type SubscriptionEventsAppendedArgs = {
  filter?: InputMaybe<EventFilter>;
};


export type SubscriptionVerifyArgs = {
  oneOf?: InputMaybe<Scalars['Int']['input']>;
  version: Scalars['ID']['input'];
};

export type Table = {
  readonly __typename: 'Table';
  readonly bytes: Scalars['BigInt']['output'];
  readonly indexBytes: Scalars['BigInt']['output'];
  readonly indexes: ReadonlyArray<Index>;
  readonly name: Scalars['String']['output'];
  readonly rows: Maybe<Scalars['BigInt']['output']>;
  readonly schema: Scalars['String']['output'];
};

export type TouchedRow = {
  readonly __typename: 'TouchedRow';
  readonly hasHistory: Scalars['Boolean']['output'];
  readonly key: Scalars['JSON']['output'];
  readonly projection: Scalars['String']['output'];
  readonly version: Scalars['ID']['output'];
};

export type Verification = {
  readonly __typename: 'Verification';
  readonly differences: Scalars['BigInt']['output'];
  readonly endedAt: Scalars['DateTime']['output'];
  readonly foundAt: Maybe<Scalars['DateTime']['output']>;
  readonly kind: Scalars['String']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly rowsCompared: Scalars['BigInt']['output'];
  readonly samples: ReadonlyArray<Difference>;
};

export type VerificationProgress = {
  readonly __typename: 'VerificationProgress';
  readonly of: Scalars['BigInt']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly result: Maybe<VerificationResult>;
};

export type VerificationResult = {
  readonly __typename: 'VerificationResult';
  readonly differences: Scalars['BigInt']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly rowsCompared: Scalars['BigInt']['output'];
  readonly samples: ReadonlyArray<Difference>;
};

export type Version = {
  readonly __typename: 'Version';
  readonly actions: ReadonlyArray<ActionName>;
  readonly answers: Scalars['Boolean']['output'];
  readonly builtByThisCode: Maybe<Scalars['Boolean']['output']>;
  readonly canary: Maybe<Canary>;
  readonly columns: ReadonlyArray<Column>;
  readonly deadLetters: Count;
  readonly error: Maybe<ProcessorError>;
  readonly etaSeconds: Maybe<Scalars['Float']['output']>;
  readonly eventsFolded: Scalars['BigInt']['output'];
  readonly eventsPerSecond: Scalars['Float']['output'];
  readonly eventsSkipped: Scalars['BigInt']['output'];
  readonly head: Scalars['BigInt']['output'];
  readonly health: Health;
  readonly heldReason: Maybe<Scalars['String']['output']>;
  readonly history: AuditPage;
  readonly id: Scalars['ID']['output'];
  readonly inline: Maybe<Scalars['String']['output']>;
  readonly isDeclared: Scalars['Boolean']['output'];
  readonly keyColumns: ReadonlyArray<Scalars['String']['output']>;
  readonly lag: Scalars['BigInt']['output'];
  readonly lagEvents: Count;
  readonly lagSeconds: Scalars['Float']['output'];
  readonly lagTrend: ReadonlyArray<LagPoint>;
  readonly missingIndexes: ReadonlyArray<Scalars['String']['output']>;
  readonly number: Scalars['Int']['output'];
  readonly owner: Maybe<Scalars['String']['output']>;
  readonly partitions: ReadonlyArray<Partition>;
  readonly paused: Maybe<Pause>;
  readonly pins: ReadonlyArray<Pin>;
  readonly position: Scalars['BigInt']['output'];
  readonly progress: Scalars['Float']['output'];
  readonly projection: Scalars['String']['output'];
  readonly rebuild: Maybe<Rebuild>;
  readonly retries: Scalars['BigInt']['output'];
  readonly retrying: Maybe<Retrying>;
  readonly runs: RunPage;
  readonly shadow: Maybe<Shadow>;
  readonly snapshots: ReadonlyArray<Snapshot>;
  readonly startsAfter: Maybe<Scalars['BigInt']['output']>;
  readonly state: VersionState;
  readonly store: Scalars['String']['output'];
  readonly table: Maybe<Table>;
  readonly unchecked: Maybe<Scalars['String']['output']>;
  readonly verification: Maybe<Verification>;
};


export type VersionHistoryArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type VersionLagTrendArgs = {
  minutes?: InputMaybe<Scalars['Int']['input']>;
  points?: InputMaybe<Scalars['Int']['input']>;
};


export type VersionPinsArgs = {
  days?: InputMaybe<Scalars['Int']['input']>;
};


export type VersionRunsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};

export type VersionDiff = {
  readonly __typename: 'VersionDiff';
  readonly columns: ReadonlyArray<ColumnDiff>;
  readonly newer: Scalars['ID']['output'];
  readonly older: Scalars['ID']['output'];
  readonly onlyNewer: Scalars['BigInt']['output'];
  readonly onlyOlder: Scalars['BigInt']['output'];
  readonly partial: ReadonlyArray<Scalars['String']['output']>;
  readonly position: Scalars['BigInt']['output'];
  readonly rows: Scalars['BigInt']['output'];
  readonly samples: ReadonlyArray<RowDiff>;
};

export type VersionInput = {
  readonly version: Scalars['ID']['input'];
};

export type VersionPage = {
  readonly __typename: 'VersionPage';
  readonly items: ReadonlyArray<Version>;
  readonly next: Maybe<Scalars['String']['output']>;
  readonly storesAway: ReadonlyArray<Scalars['String']['output']>;
};

export type VersionState =
  | 'active'
  | 'building'
  | 'failed'
  | 'ready'
  | 'retired';

export type WaitingEvent = {
  readonly __typename: 'WaitingEvent';
  readonly awaitedKey: Maybe<Scalars['String']['output']>;
  readonly awaits: ReadonlyArray<Scalars['String']['output']>;
  readonly due: Maybe<Scalars['DateTime']['output']>;
  readonly eventType: Scalars['String']['output'];
  readonly isWoken: Scalars['Boolean']['output'];
  readonly position: Scalars['BigInt']['output'];
  readonly since: Scalars['DateTime']['output'];
  readonly step: Scalars['String']['output'];
  readonly streamId: Scalars['String']['output'];
};
