import { quoted } from '../statements/identifiers.ts';
import { runtimeSequences, runtimeTables } from './privileges.ts';

/** The roles of an application, by what each does. */
export interface Roles {
  /** Owns Refold's own tables, and runs `refold migrate`. */
  readonly owner: string;
  /** Runs all processes and commands of the application. Owns the read tables. */
  readonly runtime: string;
  /** Reads the read tables, and how far they are. */
  readonly readOnly: string;
}

export interface GrantsOptions extends Roles {
  readonly readSchema: string;
  /** Whether a projection searches in texts. */
  readonly textSearch: boolean;
}

/** What the read-only role reads of the schema `refold`: where each version is, which rows lack events, and nothing that an event says. */
export const readOnlyTables: Readonly<Record<string, string>> = {
  dead_letters: 'select (table_name, key, position)',
  events: 'select (position, id, recorded_at, family, type)',
  inline_departures: 'select',
  inline_versions: 'select',
  lag: 'select',
  processors: 'select',
  projections: 'select',
  skips: 'select (table_name, key, position)',
  throughput: 'select',
};

/**
 * SQL that creates the roles if they are missing, and gives each what it needs and nothing else in Refold's schemas. For an administrator, before
 * the first `refold migrate` and after each: it can run any number of times.
 */
export function grantsScript({ readSchema, textSearch, ...roles }: GrantsOptions): string {
  const [owner, runtime, readOnly] = [roles.owner, roles.runtime, roles.readOnly].map(identifier) as [
    string,
    string,
    string,
  ]; // one for each role
  const read = identifier(readSchema);
  const grants = [
    ...Object.entries(runtimeTables).map(([name, held]) => `grant ${held.join(', ')} on refold.${name} to ${runtime};`),
    ...Object.entries(runtimeSequences).map(
      ([name, held]) => `grant ${held} on sequence refold.${name} to ${runtime};`,
    ),
    ...Object.entries(readOnlyTables).map(([name, held]) => `grant ${held} on refold.${name} to ${readOnly};`),
    `grant select on sequence refold.events_position_seq to ${readOnly};`,
  ];
  return `-- The roles of Refold and what each may do. Run it as a superuser, or as a member of all three roles that may create roles, before the
-- first \`refold migrate\` and after each. It can run any number of times. The roles have no passwords yet.

do $$
begin
${Object.values(roles).map(createRole).join('\n')}
  execute format('grant connect, temporary on database %I to %I, %I, %I', current_database(), ${Object.values(roles).map(literal).join(', ')});
end $$;

-- ${owner} owns Refold's own tables and runs \`refold migrate\`. ${runtime} creates, fills and drops the read tables.
create schema if not exists refold authorization ${owner};
create schema if not exists ${read} authorization ${owner};
grant usage on schema refold to ${runtime}, ${readOnly};
grant usage, create on schema ${read} to ${runtime};
${textSearch ? '\n-- Projections search in texts.\ncreate extension if not exists pg_trgm;\n' : ''}
-- ${readOnly} reads the read tables, those of today and those to come. It sees all rows: access rules are for clients of the API.
grant usage on schema ${read} to ${readOnly};
grant select on all tables in schema ${read} to ${readOnly};
alter default privileges for role ${runtime} in schema ${read} grant select on tables to ${readOnly};

-- For replicas (readUrl), and for messages that name the session that blocks something.
grant pg_read_all_stats to ${runtime}, ${readOnly};

-- Functions need no grant: they do what the privileges of their caller allow.
do $$
begin
  if to_regclass('refold.usage_recording') is null then
    raise notice 'Run \`refold migrate\` as %, then this script again.', ${literal(roles.owner)};
    return;
  end if;
  revoke all on all tables in schema refold from ${runtime}, ${readOnly};
  revoke all on all sequences in schema refold from ${runtime}, ${readOnly};
${grants.map((grant) => `  ${grant}`).join('\n')}
end $$;
`;
}

function createRole(name: string): string {
  return `  if not exists (select from pg_roles where rolname = ${literal(name)}) then
    create role ${identifier(name)} login;
  end if;`;
}

function identifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : quoted(name);
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
