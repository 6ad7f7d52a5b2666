import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import { type Environment, environmentOptions } from '../../config/environment.ts';
import { examine, type Finding } from '../../runtime/monitoring/examine.ts';
import { examineReplicas } from '../../runtime/monitoring/examine-replicas.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { openDatabases, openMigratedServer } from '../shared/open-operation.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument } from '../shared/version-argument.ts';

export const doctor = defineCommand({
  meta: {
    name: 'doctor',
    description:
      'Examine the database as a start does, and its settings, clock, connections, declarations, processes and replicas; say what to do about each finding. Exits with 1 if there is a problem. Changes nothing, except that it migrates an embedded server.',
  },
  args: { ...jsonArgument, ...configArgument },
  run: withErrorReporting(async ({ args }) => {
    const findings = [optionsFound(process.env), ...(await examined(await loadConfig(args.config)))];
    const problems = findings.filter(({ kind }) => kind === 'problem').length;
    if (args.json) console.log(JSON.stringify({ ok: problems === 0, findings }, null, 2));
    else console.log(toText(findings, problems));
    if (problems > 0) process.exitCode = 1;
  }),
});

/** Which options the environment sets, without secrets. Wrong ones are refused when the configuration is loaded. */
function optionsFound(env: Environment): Finding {
  const set = environmentOptions(env).map(({ source, rule, value }) =>
    ('kind' in rule && (rule.kind === 'url' || rule.kind === 'json')) || source.endsWith('_FILE')
      ? source
      : `${source}=${String(value)}`,
  );
  const message = set.length === 0 ? 'The environment sets no option.' : `The environment sets ${set.join(', ')}.`;
  return { subject: 'options', kind: 'ok', message };
}

async function examined(config: Config): Promise<Finding[]> {
  const server = await openMigratedServer(config);
  const { db, stores, close } = openDatabases(config, server.url);
  try {
    return [...(await examine(db, config, stores.apart)), ...(await examineReplicas(config, stores))];
  } finally {
    await close();
    await server.stop();
  }
}

function toText(findings: readonly Finding[], problems: number): string {
  const table = textTable(
    ['', 'subject', 'finding'],
    findings.map(({ kind, subject, message }) => [kind, subject, message]),
  );
  const sum = problems === 0 ? 'No problem found.' : `${problems} ${problems === 1 ? 'problem' : 'problems'} found.`;
  return `${table}\n${sum}`;
}
