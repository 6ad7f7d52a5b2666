import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { defaultStore } from '../../projections/projection/projection.ts';
import { itemsOf, type OperatorApi } from '../api/operator-api.ts';
import { apiArguments, withApi } from '../api/with-api.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { json } from '../shared/format.ts';
import { textTable } from '../shared/text-table.ts';
import { jsonArgument, parseVersionId } from '../shared/version-argument.ts';

export const history = defineCommand({
  meta: {
    name: 'history',
    description: 'Show what was done with versions and reactors: the step, who, why, when. The latest last.',
  },
  args: {
    of: { type: 'positional', description: 'A projection or a version, such as cart_summary@2', required: false },
    limit: { type: 'string', description: 'How many of the latest steps', default: '50', valueHint: 'N' },
    ...jsonArgument,
    ...apiArguments,
  },
  run: withErrorReporting(async ({ args }) => {
    const limit = Number(args.limit);
    if (!Number.isInteger(limit) || limit < 1)
      throw new RefoldError('INVALID_CONFIG', `--limit is a whole number from 1 on, found '${args.limit}'.`);
    const { of } = args;
    const { name, ...version } = of?.includes('@') ? parseVersionId(of) : { name: of };
    await withApi(args, (api) => printAudit(api, args, { projection: name, ...version }, limit));
  }),
});

interface AuditEntry {
  readonly at: string;
  readonly of: string;
  readonly operation: string;
  readonly fromPosition: string | null;
  readonly toPosition: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly store: string;
}

const auditQuery = `query Audit($filter: AuditFilter, $first: Int, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    items { at of operation fromPosition toPosition actor reason store }
    next
    storesAway
  }
}`;

/** Which entries of the audit log to print. */
export interface AuditFilter {
  readonly projection?: string | undefined;
  readonly version?: number;
  readonly reactor?: string;
}

/** Prints the latest entries of the audit log, the latest last. */
export async function printAudit(
  api: OperatorApi,
  args: { readonly json: boolean | undefined },
  filter: AuditFilter,
  limit: number,
): Promise<void> {
  const { items } = await itemsOf<AuditEntry>(api, auditQuery, { filter, first: Math.min(limit, 1000) }, limit);
  const latest = items.toReversed();
  if (args.json) return console.log(json(latest));
  if (latest.length === 0) return console.log('Nothing is recorded.');
  const stores = latest.some(({ store }) => store !== defaultStore);
  // Of reactors, which are moved by hand.
  const positions = latest.some(({ toPosition }) => toPosition !== null);
  console.log(
    textTable(
      ['at', 'of', ...(stores ? ['store'] : []), 'step', ...(positions ? ['positions'] : []), 'actor', 'reason'],
      latest.map(({ at, of, store, operation, fromPosition, toPosition, actor, reason }) => [
        at,
        of,
        ...(stores ? [store] : []),
        operation,
        ...(positions ? [[fromPosition, toPosition].filter((position) => position !== null).join(' → ') || '-'] : []),
        actor,
        reason,
      ]),
    ),
  );
}
