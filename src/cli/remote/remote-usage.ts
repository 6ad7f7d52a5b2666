import { integer } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { openRemote } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';
import { itemsOf, type RemotePage } from './remote-pages.ts';

interface FieldUsage {
  readonly path: string;
  readonly client: string;
  readonly clientVersion: string;
  readonly pins: readonly string[];
  readonly operations: number;
  readonly lastAt: string;
}

const usageQuery = `query Usage($path: String, $client: String, $days: Int, $after: String) {
  fieldUsage(path: $path, client: $client, days: $days, first: 1000, after: $after) {
    items { path client clientVersion pins operations lastAt }
    next
    recordedDays
  }
}`;

// What one reads on a terminal, and programs in one answer.
const mostEntries = 10_000;

/** Prints which clients use which fields. */
export async function remoteUsage(
  args: RemoteArguments,
  choice: { readonly path?: string | undefined; readonly client?: string | undefined; readonly days: number },
): Promise<void> {
  const api = openRemote(args.remote);
  let recordedDays: number | null = null;
  const { items: fields, hasMore } = await itemsOf(async (after) => {
    const { fieldUsage } = await api.query<{
      fieldUsage: RemotePage<FieldUsage> & { readonly recordedDays: number | null };
    }>(usageQuery, { ...choice, after });
    recordedDays = fieldUsage.recordedDays;
    return fieldUsage;
  }, mostEntries);
  if (args.json) return console.log(JSON.stringify({ recordedDays, fields, hasMore }, null, 2));
  const recorded =
    recordedDays === null
      ? 'Not all gateways record field usage, so there may be more.'
      : `In the last ${choice.days} days.`;
  if (fields.length === 0) return console.log(`No client has used it. ${recorded}`);
  console.log(
    textTable(
      ['path', 'client', 'version', 'pins', 'operations', 'last'],
      fields.map(({ path, client, clientVersion, pins, operations, lastAt }) => [
        path,
        client,
        clientVersion || '-',
        pins.join(', ') || '-',
        integer(operations),
        lastAt.slice(0, 16).replace('T', ' '),
      ]),
    ),
  );
  console.log(hasMore ? `These are the first ${integer(mostEntries)}. ${recorded}` : recorded);
}
