import { hiddenText } from '../../projections/declaration/hidden-values.ts';
import { etaOf, type InspectedVersion } from '../../runtime/inspection/overview.ts';
import type { VersionStatus } from '../../runtime/monitoring/status.ts';
import { canaryText } from '../../runtime/versions/canary-steps.ts';
import type { LagPoint as Point, Run as StoredRun } from '../../store/browsing/browse-runs.ts';
import type { IndexFacts, TableFacts } from '../../store/browsing/table-facts.ts';
import type { Shadow as StoredShadow } from '../../store/registry/shadows.ts';
import type { TableSnapshot } from '../../store/tables/table-snapshots.ts';
import { builder } from './builder.ts';
import { ProcessorError } from './shared-types.ts';

/** 0 to 1. */
export function shareOf(done: bigint, total: bigint): number {
  return total <= 0n ? 1 : Math.min(1, Math.max(0, Number(done) / Number(total)));
}

export const LagPoint = builder.objectRef<Point>('LagPoint');
LagPoint.implement({
  fields: (t) => ({
    at: t.expose('at', { type: 'DateTime' }),
    lag: t.expose('lag', { type: 'BigInt' }),
  }),
});

export const Retrying = builder.objectRef<NonNullable<VersionStatus['retrying']>>('Retrying');
Retrying.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    attempts: t.expose('attempts', { type: 'Int' }),
    message: t.expose('message', { type: 'String' }),
    nextAt: t.expose('nextAt', { type: 'DateTime' }),
  }),
});

export const Partition = builder.objectRef<VersionStatus['partitions'][number]>('Partition');
Partition.implement({
  fields: (t) => ({
    number: t.field({ type: 'Int', resolve: ({ partition }) => partition }),
    processor: t.expose('processor', { type: 'String', description: '`idle`, `running` or `stopped`.' }),
    owner: t.expose('owner', { type: 'String', nullable: true }),
    position: t.expose('position', { type: 'BigInt' }),
    lag: t.expose('lag', { type: 'BigInt' }),
    error: t.expose('error', { type: ProcessorError, nullable: true }),
  }),
});

export const Pause = builder.objectRef<NonNullable<VersionStatus['paused']>>('Pause');
Pause.implement({
  fields: (t) => ({
    by: t.expose('by', { type: 'String' }),
    reason: t.expose('reason', { type: 'String' }),
    since: t.expose('since', { type: 'DateTime' }),
  }),
});

export const Canary = builder.objectRef<Pick<VersionStatus, 'canary' | 'canaryFigures'>>('Canary');
Canary.implement({
  fields: (t) => ({
    percent: t.field({ type: 'Float', resolve: ({ canary }) => canary?.percent ?? 0 }),
    header: t.field({ type: 'String', nullable: true, resolve: ({ canary }) => canary?.header?.name ?? null }),
    headerValue: t.field({ type: 'String', nullable: true, resolve: ({ canary }) => canary?.header?.value ?? null }),
    text: t.field({
      type: 'String',
      description: 'Which clients, as a sentence.',
      resolve: ({ canary }) => (canary ? canaryText(canary) : ''),
    }),
    operations: t.field({ type: 'Int', resolve: ({ canaryFigures: figures }) => figures?.operations ?? 0 }),
    errors: t.field({ type: 'Int', resolve: ({ canaryFigures: figures }) => figures?.errors ?? 0 }),
    otherOperations: t.field({
      type: 'Int',
      description: 'Of clients that the active version answers.',
      resolve: ({ canaryFigures: figures }) => figures?.otherOperations ?? 0,
    }),
    otherErrors: t.field({ type: 'Int', resolve: ({ canaryFigures: figures }) => figures?.otherErrors ?? 0 }),
  }),
});

export const ShadowExample = builder.objectRef<StoredShadow['examples'][number]>('ShadowExample');
ShadowExample.implement({
  fields: (t) => ({
    operation: t.expose('operation', { type: 'String' }),
    path: t.expose('path', { type: 'String' }),
    times: t.expose('times', { type: 'Int' }),
    older: t.field({
      type: 'String',
      nullable: true,
      resolve: ({ older }, _args, { caller }) => (caller.rights.has('data') ? older : null),
    }),
    newer: t.field({
      type: 'String',
      nullable: true,
      resolve: ({ newer }, _args, { caller }) => (caller.rights.has('data') ? newer : null),
    }),
    seenAt: t.expose('seenAt', { type: 'DateTime' }),
  }),
});

export const Shadow = builder.objectRef<StoredShadow>('Shadow');
Shadow.implement({
  fields: (t) => ({
    oneOf: t.expose('oneOf', { type: 'Int' }),
    startedAt: t.expose('startedAt', { type: 'DateTime' }),
    stoppedAt: t.expose('stoppedAt', { type: 'DateTime', nullable: true, description: 'Null while it runs.' }),
    same: t.expose('same', { type: 'Int' }),
    different: t.expose('different', { type: 'Int' }),
    failed: t.expose('failed', { type: 'Int' }),
    skipped: t.expose('skipped', { type: 'Int' }),
    examples: t.field({
      type: [ShadowExample],
      description: 'Differences, the most frequent first. Their values are null without the right `data`.',
      resolve: ({ examples }) => [...examples],
    }),
  }),
});

export const Rebuild = builder.objectRef<{
  readonly rebuild: NonNullable<VersionStatus['rebuild']>;
  readonly version: InspectedVersion;
}>('Rebuild');
Rebuild.implement({
  fields: (t) => ({
    form: t.field({ type: 'String', description: '`beside` or `in place`.', resolve: ({ rebuild }) => rebuild.form }),
    position: t.field({ type: 'BigInt', resolve: ({ rebuild }) => rebuild.checkpoint }),
    startedAtPosition: t.field({ type: 'BigInt', resolve: ({ rebuild }) => rebuild.startedAtPosition }),
    snapshot: t.field({ type: 'BigInt', nullable: true, resolve: ({ rebuild }) => rebuild.snapshotId }),
    progress: t.field({
      type: 'Float',
      resolve: ({ rebuild, version }) =>
        shareOf(rebuild.checkpoint - rebuild.startedAtPosition, version.status.head - rebuild.startedAtPosition),
    }),
    eventsPerSecond: t.field({
      type: 'Float',
      resolve: ({ rebuild, version }) =>
        rebuild.form === 'beside' ? version.rebuildPace.eventsPerSecond : version.status.eventsPerSecond,
    }),
    etaSeconds: t.field({
      type: 'Float',
      nullable: true,
      resolve: ({ rebuild, version }) =>
        etaOf(
          version.status.head - rebuild.checkpoint,
          rebuild.form === 'beside' ? version.rebuildPace.positionsPerSecond : version.pace,
        ),
    }),
    requestedBy: t.field({ type: 'String', resolve: ({ rebuild }) => rebuild.requestedBy }),
    reason: t.field({ type: 'String', resolve: ({ rebuild }) => rebuild.reason }),
    owner: t.field({ type: 'String', nullable: true, resolve: ({ rebuild }) => rebuild.owner }),
    heldReason: t.field({
      type: 'String',
      nullable: true,
      description: 'Why it does not take over.',
      resolve: ({ rebuild }) => rebuild.heldReason,
    }),
    error: t.field({ type: ProcessorError, nullable: true, resolve: ({ rebuild }) => rebuild.error }),
  }),
});

export const Difference =
  builder.objectRef<NonNullable<VersionStatus['verification']>['samples'][number]>('Difference');
Difference.implement({
  fields: (t) => ({
    key: t.field({
      type: 'String',
      description: "The row's key as JSON. `(hidden)` without the right `data`.",
      resolve: ({ key }, _args, { caller }) => (caller.rights.has('data') ? key : hiddenText),
    }),
    kind: t.expose('kind', { type: 'String', description: '`different`, `missing` or `surplus`.' }),
    columns: t.field({ type: ['String'], resolve: ({ columns }) => [...columns] }),
  }),
});

export const Verification = builder.objectRef<NonNullable<VersionStatus['verification']>>('Verification');
Verification.implement({
  description: 'The last comparison of its rows with the log.',
  fields: (t) => ({
    kind: t.expose('kind', { type: 'String', description: '`activation` or `audit`.' }),
    endedAt: t.expose('endedAt', { type: 'DateTime' }),
    position: t.expose('position', { type: 'BigInt' }),
    rowsCompared: t.expose('rowsCompared', { type: 'BigInt' }),
    differences: t.expose('differences', { type: 'BigInt' }),
    samples: t.field({ type: [Difference], resolve: ({ samples }) => [...samples] }),
    foundAt: t.expose('foundAt', { type: 'DateTime', nullable: true }),
  }),
});

export const Run = builder.objectRef<StoredRun>('Run');
Run.implement({
  fields: (t) => ({
    kind: t.expose('kind', { type: 'String', description: '`processor` or `rebuild`.' }),
    partition: t.expose('partition', { type: 'Int' }),
    startedAt: t.expose('startedAt', { type: 'DateTime' }),
    endedAt: t.expose('endedAt', { type: 'DateTime' }),
    fromPosition: t.expose('fromPosition', { type: 'BigInt' }),
    toPosition: t.expose('toPosition', { type: 'BigInt' }),
    batches: t.expose('batches', { type: 'Int' }),
    events: t.expose('events', { type: 'BigInt' }),
    rows: t.expose('rows', { type: 'BigInt' }),
    busyMs: t.expose('busyMs', { type: 'BigInt' }),
  }),
});

export const RunPage = builder.objectRef<{ readonly items: StoredRun[]; readonly next: string | null }>('RunPage');
RunPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [Run] }),
    next: t.expose('next', { type: 'String', nullable: true }),
  }),
});

export const Snapshot = builder.objectRef<{ readonly snapshot: TableSnapshot; readonly isOfThisCode: boolean }>(
  'Snapshot',
);
Snapshot.implement({
  fields: (t) => ({
    id: t.field({ type: 'BigInt', resolve: ({ snapshot }) => snapshot.id }),
    position: t.field({ type: 'BigInt', resolve: ({ snapshot }) => snapshot.checkpoint }),
    rows: t.field({ type: 'BigInt', resolve: ({ snapshot }) => snapshot.rows }),
    bytes: t.field({ type: 'BigInt', resolve: ({ snapshot }) => snapshot.bytes }),
    deadLetters: t.field({
      type: 'Int',
      description: 'Counted up to 1000.',
      resolve: ({ snapshot }) => snapshot.deadLetters,
    }),
    automatic: t.field({ type: 'Boolean', resolve: ({ snapshot }) => snapshot.automatic }),
    isOfThisCode: t.expose('isOfThisCode', {
      type: 'Boolean',
      description: 'Whether the code of this process has built it.',
    }),
    takenAt: t.field({ type: 'DateTime', resolve: ({ snapshot }) => snapshot.takenAt }),
    actor: t.field({ type: 'String', resolve: ({ snapshot }) => snapshot.actor }),
    reason: t.field({ type: 'String', resolve: ({ snapshot }) => snapshot.reason }),
  }),
});

export const Index = builder.objectRef<IndexFacts>('Index');
Index.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    definition: t.expose('definition', { type: 'String', description: 'As SQL.' }),
    bytes: t.expose('bytes', { type: 'BigInt' }),
    scans: t.expose('scans', {
      type: 'BigInt',
      description: "How often it was used since the server's statistics began.",
    }),
    isValid: t.expose('isValid', { type: 'Boolean' }),
  }),
});

export const Table = builder.objectRef<TableFacts>('Table');
Table.implement({
  fields: (t) => ({
    schema: t.expose('schema', { type: 'String' }),
    name: t.expose('name', { type: 'String' }),
    rows: t.expose('rows', {
      type: 'BigInt',
      nullable: true,
      description: "PostgreSQL's estimate. Null until it has analyzed the table.",
    }),
    bytes: t.expose('bytes', { type: 'BigInt' }),
    indexBytes: t.expose('indexBytes', { type: 'BigInt' }),
    indexes: t.field({ type: [Index], resolve: ({ indexes }) => [...indexes] }),
  }),
});

export const Column = builder.objectRef<{
  readonly name: string;
  readonly type: string;
  readonly isKey: boolean;
  readonly isHidden: boolean;
}>('Column');
Column.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    type: t.expose('type', { type: 'String', description: 'Such as `text` or `decimal(14, 2)`.' }),
    isKey: t.expose('isKey', { type: 'Boolean' }),
    isHidden: t.expose('isHidden', {
      type: 'Boolean',
      description: 'Its values are shown as `(hidden)`: it is personal, or has an access rule of its own.',
    }),
  }),
});

export const Pin = builder.objectRef<{
  readonly client: string;
  readonly clientVersion: string;
  readonly operations: number;
  readonly lastAt: string;
}>('Pin');
Pin.implement({
  fields: (t) => ({
    client: t.expose('client', { type: 'String' }),
    clientVersion: t.expose('clientVersion', { type: 'String' }),
    operations: t.expose('operations', { type: 'Int' }),
    lastAt: t.expose('lastAt', { type: 'DateTime' }),
  }),
});
