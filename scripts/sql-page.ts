import { readOnlyTables } from '../src/store/server/grants.ts';
import type { Queryable } from '../src/store/statements/statement.ts';
import { markdownTable } from './generated-page.ts';

interface Described {
  readonly name: string;
  readonly isView: boolean;
  readonly comment: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly comment: string | null }[];
}

/** The page docs/sql.md: the views and tables of the schema `refold` that a migration describes. */
export async function sqlPage(db: Queryable): Promise<string> {
  const described = await readDescribed(db);
  for (const { name, columns } of described) {
    const bare = columns.filter(({ comment }) => comment === null).map((column) => column.name);
    if (bare.length > 0) throw new Error(`refold.${name} is described, and its columns ${bare.join(', ')} are not.`);
  }
  return `<!-- Generated from the comments in migrations/ by \`npm run migrations:dump\`. -->

# SQL views and tables

For operators and analysts who read Refold's state or its rows with SQL: for graphs, reports and tools of your own. Never
write to these tables. None of the views scans the log, however long it is.

## Rows of read models

The schema \`read_models\` (\`database.readSchema\`) has a view for each read model, with the name of the read model. It
shows the table of the highest active version, and moves to the next version with the activation:

\`\`\`sql
select status, count(*), sum(total_amount) from read_models.cart_summary group by status;
\`\`\`

Columns are in snake case: \`totalAmount\` is \`total_amount\`. The table of one version is beside the view. Its name may
change with a rebuild (\`refold.projections.table_name\`), so use the view. SQL users see all rows:
[access rules](security.md#who-reads-what) are for clients of the API.

The index of a [long text](queries.md#long-texts) holds its first 256 characters. A statement uses it if it names them, too:

\`\`\`sql
select customer_id from read_models.customer_profile where left(name, 256) = left('Ada', 256) and name = 'Ada';
\`\`\`

An activation, a rebuild, a retirement or an edit in development does not wait for readers of the view. While a transaction that has read it stays
open, as \`pg_dump\` does, GraphQL serves the next version, and the view shows the former one. It follows within five seconds
after that. Until then, \`refold status\`, \`refold doctor\` and the log of the workers name the version that it shows, and the
session: its process id, its application name, and when its transaction began. The former table is dropped after that.

Your own views may select from it. They stay if the next version has all columns of the former one. If the stable view has
to lose columns, GraphQL serves the next version, and the stable view waits until you drop your views: \`refold doctor\` names
them.

## The state of Refold

The read-only role of \`refold migrate --print-grants\` ([roles](operating.md#roles)) reads what is marked so. The runtime role
reads all of it. All times are of the server's clock.

${markdownTable(
  ['view or table', 'what it holds', 'read-only role'],
  described.map(({ name, isView, comment }) => [
    `[\`refold.${name}\`](#refold${name})${isView ? ', a view' : ''}`,
    cell(comment),
    readableIn(name),
  ]),
)}

${described.map(section).join('\n\n')}
`;
}

function section({ name, columns }: Described): string {
  const rows = columns.map((column) => [`\`${column.name}\``, column.type, cell(column.comment ?? '')]);
  return `### refold.${name}\n\n${markdownTable(['column', 'type', 'meaning'], rows)}`;
}

function readableIn(name: string): string {
  const granted = readOnlyTables[name];
  if (granted === undefined) return 'no';
  const columns = /\((.*)\)/.exec(granted)?.[1];
  return columns === undefined ? 'yes' : columns.replace(/\w+/g, '`$&`');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

async function readDescribed(db: Queryable): Promise<readonly Described[]> {
  return db.query<Described>({
    text: `
      select
        relname as name,
        relkind = 'v' as "isView",
        obj_description(pg_class.oid) as comment,
        json_agg(
          json_build_object(
            'name', attname, 'type', replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz'),
            'comment', col_description(pg_class.oid, attnum)
          )
          order by attnum
        ) as columns
      from pg_class
      join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
      where relnamespace = 'refold'::regnamespace
        and relkind in ('r', 'v')
        and obj_description(pg_class.oid) is not null
      group by pg_class.oid
      order by relkind = 'v' desc, relname collate "C"`,
  });
}
