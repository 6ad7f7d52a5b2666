import { actionsOfVersion } from '../../runtime/actions/possible-actions.ts';
import { boundedCount, countBound } from '../../runtime/inspection/application.ts';
import {
  etaOf,
  type InspectedReactor,
  type InspectedVersion,
  type Overview as Reading,
} from '../../runtime/inspection/overview.ts';
import { uncheckedText } from '../../store/registry/inline-versions.ts';
import { AuditPage } from './audit-types.ts';
import { builder } from './builder.ts';
import { usualDays } from './cursors.ts';
import { Overview } from './overview-types.ts';
import { Reactor } from './reactor-types.ts';
import { ActionName, Count, Health, ProcessorError, storesAway, VersionState } from './shared-types.ts';
import {
  builtByThisCode,
  columnsOf,
  historyOf,
  lagTrendOf,
  pinsOf,
  runsOf,
  shadowOf,
  snapshotsOf,
  surroundingsOf,
  tableOf,
} from './version-details.ts';
import {
  Canary,
  Column,
  LagPoint,
  Partition,
  Pause,
  Pin,
  Rebuild,
  Retrying,
  RunPage,
  Shadow,
  Snapshot,
  shareOf,
  Table,
  Verification,
} from './version-parts.ts';

export const Version = builder.objectRef<InspectedVersion>('Version');
Version.implement({
  fields: (t) => ({
    id: t.expose('id', { type: 'ID', description: 'Such as `cart_summary@2`.' }),
    projection: t.field({ type: 'String', resolve: (one) => one.status.name }),
    number: t.field({ type: 'Int', resolve: (one) => one.status.version }),
    store: t.field({
      type: 'String',
      description: 'The read store that has it; `default` is the database of the log.',
      resolve: (one) => one.status.store,
    }),
    state: t.field({ type: VersionState, resolve: (one) => one.status.state }),
    health: t.expose('health', { type: Health }),
    isDeclared: t.field({
      type: 'Boolean',
      description:
        'Whether the program of this process declares it. Only such a version has a history, and can be rebuilt, verified and compared here.',
      resolve: ({ declared }) => declared !== undefined,
    }),
    builtByThisCode: t.field({
      type: 'Boolean',
      nullable: true,
      description:
        'Whether the code of this process has built its rows. Null if the program of this process does not declare it.',
      resolve: (one, _args, { services }) => builtByThisCode(services.application, one),
    }),
    answers: t.expose('answers', {
      type: 'Boolean',
      description: 'Whether clients are answered by it (in the processes of most gateways).',
    }),
    inline: t.field({
      type: 'String',
      nullable: true,
      description: '`building`, `live` or `leaving`, if appends fold into it. Null for other versions.',
      resolve: (one) => one.status.inline,
    }),
    unchecked: t.field({
      type: 'String',
      nullable: true,
      description: 'Which appends are refused because nothing checks its unique values. Null while they are checked.',
      resolve: (one) => uncheckedText(one.status)[0] ?? null,
    }),
    startsAfter: t.field({
      type: 'BigInt',
      nullable: true,
      description: 'The position after which it begins, if it holds only later events.',
      resolve: (one) => one.status.startsAfter,
    }),
    heldReason: t.field({
      type: 'String',
      nullable: true,
      description: 'Why it does not become active by itself.',
      resolve: (one) => one.status.heldReason,
    }),
    paused: t.field({ type: Pause, nullable: true, resolve: (one) => one.status.paused }),
    actions: t.field({
      type: [ActionName],
      description: "The actions that its state allows, whatever the caller's rights are.",
      resolve: async (one, _args, { services }) =>
        actionsOfVersion(one.status, await surroundingsOf(services.application, await services.overview.read(), one)),
    }),
  }),
});

/** How far it is, and how fast. */
builder.objectFields(Version, (t) => ({
  position: t.field({ type: 'BigInt', resolve: (one) => one.status.position }),
  head: t.field({ type: 'BigInt', resolve: (one) => one.status.head }),
  lag: t.field({
    type: 'BigInt',
    description: 'Positions of the log between the two.',
    resolve: (one) => one.status.lag,
  }),
  lagEvents: t.field({
    type: Count,
    description: 'Events that it handles and has not folded.',
    resolve: ({ status }) => ({ value: Number(status.lagEvents), isExact: status.lagEventsExact }),
  }),
  lagSeconds: t.field({
    type: 'Float',
    description: 'The age of the first of them; 0 if there is none.',
    resolve: (one) => one.status.lagSeconds,
  }),
  progress: t.field({
    type: 'Float',
    description: 'Share of the log that it has reached, 0 to 1.',
    resolve: ({ status }) =>
      shareOf(status.position - (status.startsAfter ?? 0n), status.head - (status.startsAfter ?? 0n)),
  }),
  eventsPerSecond: t.field({
    type: 'Float',
    description: 'Events folded per second in the last minute.',
    resolve: (one) => one.status.eventsPerSecond,
  }),
  etaSeconds: t.field({
    type: 'Float',
    nullable: true,
    description: 'Seconds until it has caught up at this pace. Null if it has, or if it does not move.',
    resolve: ({ status, pace }) => (status.lagEvents === 0n || !isMoving(status) ? null : etaOf(status.lag, pace)),
  }),
  lagTrend: t.field({
    type: [LagPoint],
    description: 'How the lag in positions developed, the oldest first; from the run log.',
    args: { minutes: t.arg({ type: 'Int', defaultValue: 30 }), points: t.arg({ type: 'Int', defaultValue: 30 }) },
    resolve: (one, { minutes, points }, { services }) => lagTrendOf(services.application, one, minutes, points),
  }),
  eventsFolded: t.field({ type: 'BigInt', resolve: (one) => one.status.eventsFolded }),
  eventsSkipped: t.field({ type: 'BigInt', resolve: (one) => one.status.eventsSkipped }),
  retries: t.field({ type: 'BigInt', resolve: (one) => one.status.retries }),
  retrying: t.field({ type: Retrying, nullable: true, resolve: (one) => one.status.retrying }),
  owner: t.field({ type: 'String', nullable: true, resolve: (one) => one.status.owner }),
  partitions: t.field({
    type: [Partition],
    description: 'Its partitions; one if it is not partitioned.',
    resolve: ({ status }) => [...status.partitions],
  }),
  error: t.field({ type: ProcessorError, nullable: true, resolve: (one) => one.status.error }),
  deadLetters: t.field({ type: Count, resolve: ({ status }) => boundedCount(status.deadLetters, countBound) }),
}));

/** What was done with it, and what it consists of. */
builder.objectFields(Version, (t) => ({
  canary: t.field({ type: Canary, nullable: true, resolve: ({ status }) => (status.canary ? status : null) }),
  shadow: t.field({
    type: Shadow,
    nullable: true,
    resolve: (one, _args, { services }) => shadowOf(services.application, one),
  }),
  rebuild: t.field({
    type: Rebuild,
    nullable: true,
    resolve: (version) => (version.status.rebuild ? { rebuild: version.status.rebuild, version } : null),
  }),
  verification: t.field({ type: Verification, nullable: true, resolve: (one) => one.status.verification }),
  missingIndexes: t.field({
    type: ['String'],
    description: 'Columns whose index was dropped by hand.',
    resolve: ({ status }) => [...status.missingIndexes],
  }),
  history: t.field({
    type: AuditPage,
    description: 'Its transitions and what operators did with it, the latest first.',
    args: { first: t.arg({ type: 'Int', defaultValue: 50 }), after: t.arg({ type: 'String' }) },
    resolve: (one, { first, after }, { services }) => historyOf(services.application, one, first, after),
  }),
  runs: t.field({
    type: RunPage,
    description: 'What its processor and its rebuild did, in intervals of ten seconds, the latest first.',
    args: { first: t.arg({ type: 'Int', defaultValue: 50 }), after: t.arg({ type: 'String' }) },
    resolve: (one, { first, after }, { services }) => runsOf(services.application, one, first, after),
  }),
  snapshots: t.field({
    type: [Snapshot],
    resolve: (one, _args, { services }) => snapshotsOf(services.application, one),
  }),
  table: t.field({
    type: Table,
    nullable: true,
    resolve: (one, _args, { services }) => tableOf(services.application, one),
  }),
  columns: t.field({
    type: [Column],
    description: 'The columns of its rows, as it declares them. Empty if this process does not declare it.',
    resolve: (one) => columnsOf(one),
  }),
  keyColumns: t.field({
    type: ['String'],
    description: 'The columns of its key, in order.',
    resolve: ({ declared }) => [...(declared?.keyColumns ?? [])],
  }),
  pins: t.field({
    type: [Pin],
    description: 'Clients that pinned it lately.',
    args: { days: t.arg({ type: 'Int', defaultValue: usualDays }) },
    resolve: (one, { days }, { services }) => pinsOf(services.application, one, days),
  }),
}));

/** Its pace is that of the last minute. It may have stopped since. */
function isMoving({ state, paused, error }: InspectedVersion['status']): boolean {
  return state !== 'retired' && paused === null && error === null;
}

export const VersionPage = builder.objectRef<{
  readonly items: InspectedVersion[];
  readonly next: string | null;
  readonly away: readonly string[];
}>('VersionPage');
VersionPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [Version] }),
    next: t.expose('next', { type: 'String', nullable: true }),
    storesAway: t.field({ type: ['String'], description: storesAway, resolve: ({ away }) => [...away] }),
  }),
});

export const OverviewChange = builder.objectRef<{
  readonly overview: Reading;
  readonly versions: InspectedVersion[];
  readonly removedVersions: string[];
  readonly reactors: InspectedReactor[];
  readonly removedReactors: string[];
}>('OverviewChange');
OverviewChange.implement({
  fields: (t) => ({
    overview: t.expose('overview', { type: Overview }),
    versions: t.expose('versions', {
      type: [Version],
      description: 'The versions that have changed since the last message; all in the first one.',
    }),
    removedVersions: t.expose('removedVersions', {
      type: ['ID'],
      description: 'The ids of versions that are no longer in the registry.',
    }),
    reactors: t.expose('reactors', {
      type: [Reactor],
      description: 'The reactors that have changed since the last message; all in the first one.',
    }),
    removedReactors: t.expose('removedReactors', { type: ['ID'] }),
  }),
});
