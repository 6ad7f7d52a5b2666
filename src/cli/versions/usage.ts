import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import type { RecordedUsage } from '../../runtime/activation/schema-evolution.ts';
import { ageText } from '../../runtime/schema-changes/change-usage.ts';
import type { FieldUsage } from '../../store/registry/field-usage.ts';
import { isRemote, refuseOptions, remoteArgument } from '../remote/remote-arguments.ts';
import { remoteUsage } from '../remote/remote-usage.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument } from '../shared/version-argument.ts';

export const usage = defineCommand({
  meta: {
    name: 'usage',
    description: 'Show which clients use which fields, and when they last did, as recorded by the gateways.',
  },
  args: {
    path: {
      type: 'positional',
      description: 'A type, a field or an argument, such as CartSummary.totalAmount. Default: all, summed up',
      required: false,
    },
    days: { type: 'string', description: 'How many days back. Default: 30', valueHint: 'DAYS' },
    client: { type: 'string', description: 'Only the fields that this client uses', valueHint: 'NAME' },
    ...jsonArgument,
    ...configArgument,
    ...remoteArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const { path, client, days: given = '30' } = args;
    const days = Number(given);
    if (!Number.isInteger(days) || days < 1)
      throw new RefoldError('INVALID_CONFIG', `--days is a whole number from 1 on, found '${given}'.`);
    if (isRemote(args)) {
      refuseOptions(args);
      return remoteUsage(args, { path, client, days });
    }
    const found = await withOperation(await loadConfig(args.config), ({ schemaEvolution }) =>
      schemaEvolution.usage({ days, paths: path === undefined ? undefined : [path] }),
    );
    const fields = found.fields.filter((one) => client === undefined || one.client === client);
    if (args.json) console.log(json({ ...found, fields }));
    else console.log(toText(fields, found.recordedDays, days, path === undefined && client === undefined));
  }),
});

function toText(
  fields: readonly FieldUsage[],
  recordedDays: RecordedUsage['recordedDays'],
  days: number,
  summedUp: boolean,
): string {
  const recorded =
    recordedDays === null
      ? 'Not all gateways record field usage, so there may be more.'
      : recordedDays < days
        ? `Recorded for ${ageText(recordedDays)}.`
        : `In the last ${days} days.`;
  if (fields.length === 0) return `No client has used it. ${recorded}`;
  const table = summedUp
    ? textTable(['path', 'clients', 'operations', 'last'], [...Map.groupBy(fields, ({ path }) => path)].map(summary))
    : textTable(['path', 'client', 'version', 'pins', 'operations', 'last'], fields.map(line));
  return `${table}\n${recorded}`;
}

function summary([path, usages]: readonly [string, readonly FieldUsage[]]): readonly string[] {
  const clients = new Set(usages.map(({ client, clientVersion }) => `${client}\0${clientVersion}`));
  const operations = usages.reduce((sum, one) => sum + one.operations, 0);
  const last =
    usages
      .map(({ lastAt }) => lastAt)
      .toSorted()
      .at(-1) ?? '';
  return [path, integer(clients.size), integer(operations), minute(last)];
}

function line({ path, client, clientVersion, pins, operations, lastAt }: FieldUsage): readonly string[] {
  return [path, client, clientVersion || '-', pins || '-', integer(operations), minute(lastAt)];
}

function minute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}
