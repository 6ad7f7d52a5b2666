import { readFile } from 'node:fs/promises';
import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import type { Finding } from '../../runtime/activation/check-declarations.ts';
import { checkDeclarationsOf } from '../../runtime/monitoring/examine.ts';
import { limitedInputs } from '../../schema/analysis/limited-inputs.ts';
import { checkSchema } from '../../schema/check-schema.ts';
import type { Database } from '../../store/postgres/database.ts';
import { pendingMigrations } from '../../store/server/migrate.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { openDatabases, openMigratedServer } from '../shared/open-operation.ts';
import { declaredSchema } from './declared-schema.ts';

export const check = defineCommand({
  meta: {
    name: 'check',
    description:
      'Build the schemas of the declarations, and compare the declarations with the database, and with a schema file: changed tables and code, missing versions of projections and reactors, pending migrations. Exits with 1 if there is a problem. Changes nothing, except that it migrates an embedded server.',
  },
  args: {
    schema: { type: 'string', description: 'A file that refold schema wrote', valueHint: 'FILE' },
    json: { type: 'boolean', description: 'As JSON' },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    checkSchema(config);
    const findings = [
      ...(args.schema === undefined ? [] : await checkSchemaFile(config, args.schema)),
      ...limitedInputs(config.projections, config.commands).map((message): Finding => ({ kind: 'note', message })),
      ...(await checkDatabase(config)),
    ];
    const problems = findings.filter(({ kind }) => kind === 'problem');
    if (args.json) console.log(JSON.stringify({ ok: problems.length === 0, findings }, null, 2));
    else console.log(toText(findings, problems.length));
    if (problems.length > 0) process.exitCode = 1;
  }),
});

async function checkSchemaFile(config: Config, file: string): Promise<Finding[]> {
  const found = await readFile(file, 'utf8').catch(() => undefined);
  if (found === declaredSchema(config)) return [];
  const problem = found === undefined ? "can't be read" : 'is not the schema of the declarations';
  return [{ kind: 'problem', message: `'${file}' ${problem}. Write it with 'refold schema --out ${file}'.` }];
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const server = await openMigratedServer(config);
  const { db, stores, close } = openDatabases(config, server.url);
  try {
    const behind = [await migrationsProblem('The database', db)];
    for (const store of stores.apart) behind.push(await migrationsProblem(`The read store '${store.name}'`, store.db));
    // The registry may lack columns that the checks read.
    const problems = behind.filter((message) => message !== undefined);
    if (problems.length > 0) return problems.map((message) => ({ kind: 'problem', message }));
    return await checkDeclarationsOf(db, config);
  } finally {
    await close();
    await server.stop();
  }
}

async function migrationsProblem(what: string, db: Database): Promise<string | undefined> {
  const { pending, problem } = await pendingMigrations(db);
  if (problem !== undefined || pending.length === 0) return problem;
  return `${what} lacks ${pending.length} of Refold's migrations (${pending.join(', ')}). Run 'refold migrate', then check again.`;
}

function toText(findings: readonly Finding[], problems: number): string {
  const lines = findings.map(({ kind, message }) => `${kind === 'problem' ? 'problem' : 'note   '}  ${message}`);
  const sum = problems === 0 ? 'No problem found.' : `${problems} ${problems === 1 ? 'problem' : 'problems'} found.`;
  return [...lines, sum].join('\n');
}
