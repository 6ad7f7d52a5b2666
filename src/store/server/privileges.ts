import { onlyRow, type Queryable } from '../postgres/statement.ts';

interface Missing {
  readonly role: string;
  /** The missing grants, such as `insert, update on table refold.events`. */
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
  return `the role ${role} lacks privileges. As their owner run ${grants}, or connect as another role.`;
}

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
        cross join lateral unnest(
          case
            when relkind = 'v' or relname in ('migrations', 'migrations_lock') then array['select']
            when relname in ('events', 'transitions', 'reactor_steps') then array['select', 'insert'] -- append-only
            else array['select', 'insert', 'update', 'delete']
          end
        ) with ordinality as of_table (privilege, place)
        where relnamespace = to_regnamespace('refold')
          and relkind in ('r', 'p', 'v')
          and not has_table_privilege(oid, privilege)
        group by relname
        union all
        select 5, format('usage, select on sequence refold.%I', relname), false
        from pg_class
        where relnamespace = to_regnamespace('refold')
          and case when relkind = 'S' then not has_sequence_privilege(oid, 'usage') end -- fails for a table
      )
      select
        quote_ident(current_user) as role,
        coalesce(array_agg(privilege order by rank, privilege) filter (where not held), '{}') as missing
      from needed`,
    values: [readSchema],
  });
  return onlyRow(rows);
}
