/**
 * The rooms of the halls of `src/`, from the bottom up: the purpose of each, and the rooms of its hall that it may use.
 * A file on top of its hall may use all.
 */
export interface Room {
  readonly purpose: string;
  readonly uses: readonly string[];
}

export const rooms: Readonly<Record<string, Room>> = {
  'projections/columns': { purpose: 'kinds of columns and their values', uses: [] },
  'projections/projection': { purpose: 'what a projection is', uses: ['columns'] },
  'projections/declaration': { purpose: 'how a projection is declared and checked', uses: ['columns', 'projection'] },
  'projections/fold': { purpose: 'events folded into rows', uses: ['columns', 'declaration', 'projection'] },
  'projections/queries': {
    purpose: 'filters, orders and pages, apart from any database',
    uses: ['columns', 'declaration', 'projection'],
  },
  'store/statements': { purpose: 'typed statements, and what they return', uses: [] },
  'store/postgres': { purpose: 'the driver: connections, sessions, errors', uses: ['statements'] },
  'store/server': {
    purpose: 'whether a server can be used, its migrations, locks that all processes know',
    uses: ['postgres', 'statements'],
  },
  'store/citus': {
    purpose: 'read stores in a Citus cluster: whether it is suitable, where tables are',
    uses: ['postgres', 'server', 'statements'],
  },
  'store/embedded': {
    purpose: 'the server that comes with an npm package',
    uses: ['postgres', 'server', 'statements'],
  },
  'store/log': { purpose: 'the event log: appends, reads, streams, the horizon', uses: ['postgres', 'statements'] },
  'store/append-queue': {
    purpose: 'appends of many callers joined into statements, apart from those that wait for locks',
    uses: ['log', 'postgres'],
  },
  'store/browsing': {
    purpose: 'the log as operators search it',
    uses: ['log', 'postgres', 'processors', 'statements'],
  },
  'store/ownership': {
    purpose: 'which process owns which work: leases, advisory locks, announcements',
    uses: ['postgres', 'server', 'statements'],
  },
  'store/processors': {
    purpose: 'checkpoints, partitions, dead letters, runs, what is told of changes',
    uses: ['postgres', 'server', 'statements'],
  },
  'store/registry': {
    purpose: 'versions and their life: definitions, transitions, rebuilds, canaries, shadows',
    uses: ['postgres', 'processors', 'server', 'statements'],
  },
  'store/columns': { purpose: 'kinds of columns and their values in SQL', uses: [] },
  'store/distributed': {
    purpose: 'rows that a Citus cluster distributes by partition, and their checkpoints',
    uses: ['columns', 'postgres', 'processors', 'registry', 'server', 'statements'],
  },
  'store/tables': {
    purpose: 'read tables: made, written, compared, copied, dropped',
    uses: ['columns', 'distributed', 'postgres', 'processors', 'registry', 'server', 'statements'],
  },
  'store/set-based': {
    purpose: 'the SQL of evolveSql: batches merged into read tables',
    uses: ['columns', 'statements', 'tables'],
  },
  'store/inline': {
    purpose: 'rows that commit with their append',
    uses: ['log', 'postgres', 'processors', 'server', 'statements', 'tables'],
  },
  'store/queries': {
    purpose: 'what clients read of read tables',
    uses: ['columns', 'postgres', 'statements', 'tables'],
  },
  'store/reactors': {
    purpose: 'checkpoints, letters and steps of reactors',
    uses: ['postgres', 'processors', 'statements'],
  },
  'runtime/scheduling': { purpose: 'rounds and wake-ups', uses: [] },
  'runtime/consumers': { purpose: 'the log, read once for all who follow it, and its history', uses: ['scheduling'] },
  'runtime/schema-changes': { purpose: 'what a new version changes for clients, and who uses it', uses: [] },
  'runtime/versions': {
    purpose: 'the life of a version: activated, rolled back, paused, retired',
    uses: ['scheduling', 'schema-changes'],
  },
  'runtime/registration': {
    purpose: 'what is declared, compared with the registry when a process starts',
    uses: ['schema-changes', 'versions'],
  },
  'runtime/dead-letters': { purpose: 'events that could not be folded: skipped, kept, sent again', uses: ['versions'] },
  'runtime/processors': {
    purpose: 'events folded into rows, and rows written',
    uses: ['consumers', 'dead-letters', 'scheduling'],
  },
  'runtime/set-based': {
    purpose: 'batches folded with evolveSql',
    uses: ['consumers', 'dead-letters', 'processors'],
  },
  'runtime/verification': {
    purpose: 'whether rows are what the log makes of them',
    uses: ['processors', 'scheduling', 'schema-changes', 'set-based', 'versions'],
  },
  'runtime/rebuilds': {
    purpose: 'rebuilds and snapshots of read tables',
    uses: ['dead-letters', 'processors', 'scheduling', 'versions'],
  },
  'runtime/commands': { purpose: 'commands decide and append', uses: ['dead-letters'] },
  'runtime/reactors': {
    purpose: 'side effects and workflows',
    uses: ['commands', 'consumers', 'dead-letters', 'processors', 'scheduling', 'versions'],
  },
  'runtime/activation': {
    purpose: 'whether a version may answer',
    uses: ['dead-letters', 'processors', 'registration', 'scheduling', 'schema-changes', 'verification', 'versions'],
  },
  'runtime/reads': {
    purpose: 'answers of one snapshot and one version map',
    uses: ['scheduling', 'verification', 'versions'],
  },
  'runtime/stores': { purpose: 'several read stores as one', uses: ['reads', 'versions'] },
  'runtime/live': { purpose: 'what subscribers follow', uses: ['consumers', 'reads', 'scheduling'] },
  'runtime/ownership': {
    purpose: 'what this process maintains, and how it watches its database',
    uses: ['consumers', 'processors', 'reads', 'rebuilds', 'scheduling', 'set-based', 'versions'],
  },
  'runtime/monitoring': {
    purpose: 'status, metrics, usage',
    uses: [
      'activation',
      'commands',
      'consumers',
      'ownership',
      'reactors',
      'reads',
      'scheduling',
      'verification',
      'versions',
    ],
  },
  'runtime/inspection': {
    purpose: 'what operators look at: versions, rows, events and dead letters, in bounded parts',
    uses: ['activation', 'dead-letters', 'monitoring', 'reactors', 'reads', 'stores', 'versions'],
  },
  'runtime/actions': {
    purpose: 'what operators do, each action with a preview by the same code',
    uses: ['activation', 'dead-letters', 'inspection', 'monitoring', 'reactors', 'rebuilds', 'stores', 'versions'],
  },
  'schema/contract': { purpose: 'what the schema needs of the world', uses: [] },
  'schema/values': { purpose: 'values that clients write: cursors, identifiers, inputs', uses: ['contract'] },
  'schema/builder': {
    purpose: 'what all types share: the builder, scalars, names, descriptions',
    uses: ['contract', 'values'],
  },
  'schema/types': {
    purpose: 'GraphQL types of columns, rows, filters, orders, aggregates',
    uses: ['builder', 'contract', 'values'],
  },
  'schema/input': { purpose: 'arguments of lists and aggregates', uses: ['builder', 'types', 'values'] },
  'schema/analysis': {
    purpose: 'what a document costs, reads and uses; what differs between two schemas',
    uses: ['builder', 'contract', 'types', 'values'],
  },
  'schema/fields': {
    purpose: 'the fields of queries, mutations and subscriptions',
    uses: ['analysis', 'builder', 'contract', 'input', 'types', 'values'],
  },
  'schema/compile': {
    purpose: 'operations compiled to few statements',
    uses: ['builder', 'contract', 'input', 'types', 'values'],
  },
  'schema/access': { purpose: 'what a viewer may see', uses: ['builder', 'contract', 'input', 'types', 'values'] },
  'gateway/requests': { purpose: 'what is known of a request, and how its errors are told', uses: [] },
  'gateway/policies': { purpose: 'who may ask, and how much', uses: ['requests'] },
  'gateway/rollout': {
    purpose: 'which version a client is answered by while one is tried',
    uses: ['policies', 'requests'],
  },
  'gateway/operations': {
    purpose: 'an operation from its text to its answer',
    uses: ['policies', 'requests', 'rollout'],
  },
  'gateway/http': {
    purpose: 'requests over HTTP, one handler after the other',
    uses: ['operations', 'policies', 'requests'],
  },
  'gateway/subscriptions': { purpose: 'what subscribers are sent', uses: ['operations', 'policies', 'requests'] },
  'gateway/transports': {
    purpose: 'server-sent events and WebSocket',
    uses: ['operations', 'policies', 'requests', 'rollout', 'subscriptions'],
  },
  'admin/access': { purpose: 'who calls the admin API, and with which rights', uses: [] },
  'admin/schema': { purpose: 'what resolvers are given and return', uses: ['access'] },
  'admin/resolvers': { purpose: 'what answers the fields of the admin API', uses: ['access', 'schema'] },
  'admin/serving': { purpose: 'operations of the admin API, and requests to it', uses: ['access', 'schema'] },
  'cli/shared': { purpose: 'what commands share: configuration, arguments, output', uses: [] },
  'cli/api': { purpose: 'the admin API that commands use, of a gateway or of this process', uses: ['shared'] },
  'cli/setup': { purpose: 'what a project needs: migrations, schema, checks, imports', uses: ['shared'] },
  'cli/serving': { purpose: 'processes that serve', uses: ['setup', 'shared'] },
  'cli/versions': { purpose: 'the life of versions, as operators direct it', uses: ['api', 'shared'] },
  'cli/monitoring': { purpose: 'status', uses: ['api', 'reactors', 'shared', 'versions'] },
  'cli/events': { purpose: 'events of the log', uses: ['api', 'shared'] },
  'cli/reactors': { purpose: 'reactors and dead letters', uses: ['api', 'shared', 'versions'] },
};
