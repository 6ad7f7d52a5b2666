import { type Health as HealthOfVersion, healths } from '../../runtime/inspection/health.ts';
import type { LastKnown, Overview as Reading } from '../../runtime/inspection/overview.ts';
import { stallText } from '../../runtime/monitoring/stall-text.ts';
import { builder } from './builder.ts';
import { Count, Health, VersionState } from './shared-types.ts';

export const HealthCount = builder.objectRef<{ readonly health: HealthOfVersion; readonly count: number }>(
  'HealthCount',
);
HealthCount.implement({
  fields: (t) => ({
    health: t.expose('health', { type: Health }),
    count: t.expose('count', { type: 'Int' }),
  }),
});

export const Stall = builder.objectRef<Reading['stalls'][number]>('Stall');
Stall.implement({
  fields: (t) => ({
    position: t.field({
      type: 'BigInt',
      description: "The horizon cannot pass this position until the session's transaction ends.",
      resolve: ({ tag }) => tag,
    }),
    pid: t.expose('pid', { type: 'Int', nullable: true, description: 'Null for a prepared transaction.' }),
    applicationName: t.expose('applicationName', { type: 'String' }),
    state: t.expose('state', { type: 'String' }),
    seconds: t.expose('seconds', { type: 'Float', description: 'Age of its transaction.' }),
    query: t.field({
      type: 'String',
      nullable: true,
      description: 'Its statement. Null without the right `data`, and if the database user may not see it.',
      resolve: ({ query }, _args, { caller }) => (caller.rights.has('data') ? query : null),
    }),
    role: t.expose('role', { type: 'String', nullable: true }),
    clientAddress: t.expose('clientAddress', { type: 'String', nullable: true }),
    text: t.field({
      type: 'String',
      description: 'A sentence for the operator: who holds the log back, since when, and what to do.',
      resolve: (stall, _args, { caller }) => stallText(caller.rights.has('data') ? stall : { ...stall, query: null }),
    }),
  }),
});

export const Process = builder.objectRef<Reading['processes'][number]>('Process');
Process.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    role: t.expose('role', {
      type: 'String',
      nullable: true,
      description: '`gateway`, `worker` or `all`. Null for a process of an older release.',
    }),
    versions: t.field({
      type: ['ID'],
      description: 'The versions that it declares.',
      resolve: ({ versions }) => [...versions],
    }),
    owns: t.field({
      type: ['String'],
      description: 'The units that it owns, such as `processor cart_summary@2/0`.',
      resolve: ({ owns }) => [...owns],
    }),
    startedAt: t.expose('startedAt', { type: 'DateTime' }),
    heartbeatAt: t.expose('heartbeatAt', { type: 'DateTime' }),
  }),
});

export const LostOwner = builder.objectRef<Reading['lostOwners'][number]>('LostOwner');
LostOwner.implement({
  fields: (t) => ({
    name: t.field({ type: 'String', resolve: ({ owner }) => owner }),
    units: t.expose('units', { type: 'Int' }),
    seconds: t.expose('seconds', {
      type: 'Float',
      nullable: true,
      description: 'Seconds since its last heartbeat; null if there is no record of it.',
    }),
    store: t.expose('store', { type: 'String', description: 'The read store of the units.' }),
  }),
});

export const Lease = builder.objectRef<Reading['leases'][number]>('Lease');
Lease.implement({
  fields: (t) => ({
    unit: t.expose('unit', { type: 'String', description: 'Such as `processor cart_summary@2/0`.' }),
    owner: t.expose('owner', { type: 'String', nullable: true, description: 'The process. Null if it is not known.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
    store: t.expose('store', { type: 'String', description: 'The read store of the unit.' }),
  }),
});

export const ConnectionGroup = builder.objectRef<Reading['connections']['groups'][number]>('ConnectionGroup');
ConnectionGroup.implement({
  fields: (t) => ({
    applicationName: t.expose('applicationName', { type: 'String' }),
    state: t.expose('state', { type: 'String', description: '`active`, `idle`, `idle in transaction`.' }),
    count: t.expose('count', { type: 'Int' }),
  }),
});

export const Connections = builder.objectRef<Reading['connections']>('Connections');
Connections.implement({
  fields: (t) => ({
    limit: t.expose('limit', { type: 'Int', description: "The server's limit." }),
    used: t.expose('used', { type: 'Int', description: 'Connections to all databases of the server.' }),
    groups: t.field({ type: [ConnectionGroup], resolve: ({ groups }) => [...groups] }),
  }),
});

export const KnownVersion = builder.objectRef<LastKnown['versions'][number]>('KnownVersion');
KnownVersion.implement({
  description: 'A version as it was last read.',
  fields: (t) => ({
    id: t.expose('id', { type: 'ID' }),
    state: t.field({ type: VersionState, resolve: ({ status }) => status.state }),
    position: t.field({ type: 'BigInt', resolve: ({ status }) => status.position }),
  }),
});

export const KnownVersions = builder.objectRef<LastKnown>('KnownVersions');
KnownVersions.implement({
  fields: (t) => ({
    at: t.expose('at', { type: 'DateTime', description: 'When this process read them.' }),
    versions: t.field({ type: [KnownVersion], resolve: ({ versions }) => [...versions] }),
  }),
});

export const Store = builder.objectRef<Reading['stores'][number]>('Store');
Store.implement({
  description: 'A read store: a database that has versions.',
  fields: (t) => ({
    name: t.expose('name', { type: 'ID', description: '`default` is the database of the log.' }),
    isAway: t.expose('isAway', {
      type: 'Boolean',
      description: 'Whether it does not respond: its versions are missing from the overview, and their queries fail.',
    }),
    versionCount: t.field({ type: 'Int', resolve: ({ versions }) => versions }),
    connections: t.expose('connections', {
      type: Connections,
      nullable: true,
      description: 'Connections to it. Null if it does not respond.',
    }),
    lastKnown: t.expose('lastKnown', {
      type: KnownVersions,
      nullable: true,
      description: 'What this process last knew of it. Null if it responds, and if this process has not read it.',
    }),
  }),
});

export const Answer = builder.objectRef<Reading['answers'][number]>('Answer');
Answer.implement({
  fields: (t) => ({
    projection: t.field({ type: 'String', resolve: ({ name }) => name }),
    version: t.field({
      type: 'ID',
      nullable: true,
      description: 'Null if no version answers.',
      resolve: ({ name, version }) => (version === null ? null : `${name}@${version}`),
    }),
    canary: t.field({
      type: 'ID',
      nullable: true,
      description: 'The version that answers some clients instead.',
      resolve: ({ name, canary }) => (canary ? `${name}@${canary.version}` : null),
    }),
    processes: t.field({
      type: ['String'],
      description: 'The processes that answer this way. Empty if no gateway runs.',
      resolve: ({ processes }) => [...processes],
    }),
  }),
});

export const Overview = builder.objectRef<Reading>('Overview');
Overview.implement({
  fields: (t) => ({
    at: t.expose('at', { type: 'DateTime' }),
    head: t.expose('head', { type: 'BigInt', description: 'The highest position that was assigned.' }),
    horizon: t.expose('horizon', {
      type: 'BigInt',
      description: 'Up to here the log is complete; nothing later is folded yet.',
    }),
    stalls: t.field({
      type: [Stall],
      description: 'Sessions that hold back the horizon, the worst first. At most 20.',
      resolve: ({ stalls }) => [...stalls],
    }),
    viewsBehind: t.field({
      type: ['String'],
      description: 'Sentences about SQL views that do not show the version that answers yet, and why.',
      resolve: ({ viewsBehind }) => [...viewsBehind],
    }),
    notRegistered: t.field({
      type: ['ID'],
      description:
        'Versions that the program of this process declares and no process has registered yet. Those of a store that does not respond are not known.',
      resolve: ({ notRegistered }) => [...notRegistered],
    }),
    appendsPerSecond: t.expose('appendsPerSecond', {
      type: 'Float',
      description: 'Events appended per second in the last minute.',
    }),
    versionCount: t.field({ type: 'Int', resolve: ({ versions }) => versions.length }),
    health: t.field({
      type: [HealthCount],
      description: 'How many versions have each health.',
      resolve: ({ versions }) =>
        healths.flatMap((health) => {
          const count = versions.filter((one) => one.health === health).length;
          return count === 0 ? [] : [{ health, count }];
        }),
    }),
    deadLetters: t.expose('deadLetters', { type: Count }),
    processes: t.field({
      type: [Process],
      description: 'Running processes, by name. At most 200.',
      resolve: ({ processes }) => [...processes],
    }),
    lostOwners: t.field({
      type: [LostOwner],
      description: 'Owners according to the registry that are silent.',
      resolve: ({ lostOwners }) => [...lostOwners],
    }),
    leases: t.field({ type: [Lease], resolve: ({ leases }) => [...leases] }),
    connections: t.expose('connections', {
      type: Connections,
      description: 'Connections to the database of the log, by program and state.',
    }),
    stores: t.field({
      type: [Store],
      description: 'All read stores, that of the log first.',
      resolve: ({ stores }) => [...stores],
    }),
    answers: t.field({
      type: [Answer],
      description: 'Which version answers clients, for each projection. Several entries if the gateways do not agree.',
      resolve: ({ answers }) => [...answers],
    }),
  }),
});
