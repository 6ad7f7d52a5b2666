import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { ageText } from '../../runtime/schema-changes/change-usage.ts';
import { itemsOf } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { integer, json } from '../shared/format.ts';
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
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const { path, client, days: given = '30' } = args;
    const days = Number(given);
    if (!Number.isInteger(days) || days < 1)
      throw new RefoldError('INVALID_CONFIG', `--days is a whole number from 1 on, found '${given}'.`);
    const { items, page } = await withApi(args, (api) =>
      itemsOf<FieldUsage, { readonly recordedDays: number | null }>(api, query, { path, client, days }),
    );
    const { recordedDays } = page;
    if (args.json) console.log(json({ recordedDays, fields: items }));
    else console.log(toText(items, recordedDays, days, path === undefined && client === undefined));
  }),
});

interface FieldUsage {
  readonly path: string;
  readonly client: string;
  readonly clientVersion: string;
  readonly pins: readonly string[];
  readonly operations: number;
  readonly lastAt: string;
}

const query = `query Usage($path: String, $client: String, $days: Int, $after: String) {
  fieldUsage(path: $path, client: $client, days: $days, first: 1000, after: $after) {
    items { path client clientVersion pins operations lastAt }
    next
    recordedDays
  }
}`;

function toText(fields: readonly FieldUsage[], recordedDays: number | null, days: number, summedUp: boolean): string {
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
  return [path, client, clientVersion || '-', pins.join(', ') || '-', integer(operations), minute(lastAt)];
}

function minute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}
