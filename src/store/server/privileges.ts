import { onlyRow, type Queryable } from '../statements/statement.ts';

export type TablePrivilege = 'select' | 'insert' | 'update' | 'delete';

const everyRow: readonly TablePrivilege[] = ['select', 'insert', 'update', 'delete'];
const appendOnly: readonly TablePrivilege[] = ['select', 'insert'];
const readOnly: readonly TablePrivilege[] = ['select'];

/** What a running application does with each table and view of the schema `refold`. */
export const runtimeTables: Readonly<Record<string, readonly TablePrivilege[]>> = {
  advisory_locks: readOnly,
  append_keys: everyRow,
  awaited_events: everyRow,
  canaries: everyRow,
  change_floors: ['select', 'insert', 'update'],
  changes: everyRow,
  dead_letters: everyRow,
  discards: everyRow,
  events: appendOnly,
  field_usage: everyRow,
  import_ranges: appendOnly,
  inline_departures: ['select', 'insert', 'delete'],
  inline_versions: everyRow,
  lag: readOnly,
  leases: everyRow,
  migrations: readOnly,
  old_tables: everyRow,
  partition_checkpoints: everyRow,
  processes: everyRow,
  processors: everyRow,
  projections: ['select', 'insert', 'update'],
  reactor_attempts: everyRow,
  reactor_instances: everyRow,
  reactor_letters: everyRow,
  reactor_operations: appendOnly,
  reactor_versions: ['select', 'insert', 'delete'],
  reactors: everyRow,
  rebuilds: everyRow,
  runs: everyRow,
  shadow_examples: ['select', 'insert', 'update'],
  shadows: everyRow,
  skips: ['select', 'insert', 'delete'],
  stalls: readOnly,
  stream_snapshots: ['select', 'insert', 'delete'],
  streams: everyRow,
  table_snapshots: ['select', 'insert', 'update', 'delete'],
  tags: readOnly,
  throughput: readOnly,
  transitions: appendOnly,
  usage_clients: everyRow,
  usage_recording: ['select', 'insert', 'delete'],
  verifications: ['select', 'insert', 'update'],
};

/** What it does with sequences. Identity columns draw from theirs without a privilege. */
export const runtimeSequences: Readonly<Record<string, 'select' | 'usage'>> = {
  events_position_seq: 'select',
  inline_leaves: 'select',
  inline_lives: 'usage',
  table_snapshots_id_seq: 'usage',
};

interface Missing {
  readonly role: string;
  /** The missing grants, such as `insert, update on refold.events`. */
  readonly missing: readonly string[];
}

/**
 * The privileges that a running application needs and that the session's role lacks. The role need not own the tables. If the read schema
 * does not exist, the role must be able to create it.
 */
export async function privilegeProblem(db: Queryable, readSchema: string): Promise<string | undefined> {
  const { role, missing } = await readMissing(db, readSchema);
  if (missing.length === 0) return undefined;
  const grants = missing.map((privilege) => `\`grant ${privilege} to ${role}\``).join(', ');
  return (
    `the role ${role} lacks privileges. As their owner run ${grants}, or connect as another role. ` +
    '`refold migrate --print-grants` prints all of them.'
  );
}

/** Tables that do not exist yet are no problem: a database that lacks migrations is refused with another message. */
async function readMissing(db: Queryable, readSchema: string): Promise<Missing> {
  const rows = await db.query<Missing>({
    text: `
      with needed as (
        select 1 as rank, format('create on database %I', current_database()) as privilege,
          exists (select from pg_namespace where nspname = $1)
            or has_database_privilege(current_database(), 'create') as held
        union all
        select 2, format('usage, create on schema %I', nspname), has_schema_privilege(oid, 'usage') and has_schema_privilege(oid, 'create')
        from pg_namespace
        where nspname = $1
        union all
        select 3, 'usage on schema refold', has_schema_privilege(oid, 'usage')
        from pg_namespace
        where nspname = 'refold'
        union all
        select 4, format('%s on refold.%I', string_agg(privilege, ', ' order by place), relname), false
        from pg_class
        join jsonb_each($2) as of_table (name, privileges) on of_table.name = relname
        cross join lateral jsonb_array_elements_text(of_table.privileges) with ordinality as of_role (privilege, place)
        where relnamespace = to_regnamespace('refold')
          and relkind in ('r', 'p', 'v')
          and not has_table_privilege(oid, privilege)
        group by relname
        union all
        select 5, format('%s on sequence refold.%I', privilege, relname), false
        from pg_class
        join jsonb_each_text($3) as of_sequence (name, privilege) on of_sequence.name = relname
        where relnamespace = to_regnamespace('refold')
          and case when relkind = 'S' then not has_sequence_privilege(oid, privilege) end -- fails for a table
      )
      select
        quote_ident(current_user) as role,
        coalesce(array_agg(privilege order by rank, privilege) filter (where not held), '{}') as missing
      from needed`,
    values: [readSchema, JSON.stringify(runtimeTables), JSON.stringify(runtimeSequences)],
  });
  return onlyRow(rows);
}
