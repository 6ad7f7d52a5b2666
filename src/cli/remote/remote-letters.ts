import { RefoldError } from '../../errors.ts';
import { typedValues } from '../../projections/projection/given-key.ts';
import { integer } from '../shared/format.ts';
import { takenByText } from '../shared/letter-texts.ts';
import { warnOfStoresAway } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';
import { type ActionArguments, act, runAction } from './remote-action.ts';
import { openRemote, type RemoteApi } from './remote-api.ts';
import type { RemoteArguments } from './remote-arguments.ts';
import { itemsOf, type RemotePage } from './remote-pages.ts';

interface RemoteLetter {
  readonly id: string;
  readonly of: string;
  readonly position: string;
  readonly eventType: string;
  readonly streamId: string;
  readonly key: unknown;
  readonly attempts: number;
  readonly error: { readonly message: string; readonly stack: string | null } | null;
  readonly takenBy: readonly unknown[] | null;
}

const lettersQuery = `query Letters($of: ID, $first: Int, $after: String) {
  deadLetters(filter: { of: $of }, first: $first, after: $after) {
    items { id of position eventType streamId key attempts at error { message stack } takenBy }
    next
    storesAway
  }
}`;

// There may be millions. The admin page filters and groups them.
const mostShown = 1000;
const mostIds = 1000;

/** Prints dead letters, of one version or reactor or of all. */
export async function remoteLetters(args: RemoteArguments, of: string | undefined): Promise<void> {
  const { items, hasMore } = await lettersOf(openRemote(args.remote), of, mostShown);
  if (args.json) return console.log(JSON.stringify({ letters: items, hasMore }, null, 2));
  if (items.length === 0) return console.log(of ? `${of} has no dead letters.` : 'There are no dead letters.');
  console.log(
    textTable(
      ['of', 'position', 'event', 'stream', 'row or key', 'attempts', 'error'],
      items.map(({ of: name, position, eventType, streamId, key, attempts, error, takenBy }) => [
        name,
        integer(BigInt(position)),
        eventType,
        streamId,
        key === null ? '?' : typeof key === 'string' ? key : JSON.stringify(key),
        String(attempts),
        `${error?.message ?? '(waits behind an earlier one)'}${takenByText(takenBy)}`,
      ]),
    ),
  );
  if (hasMore) console.log(`These are the first ${integer(mostShown)}. The admin page filters and groups them.`);
}

interface Discard {
  readonly position: string;
  readonly eventType: string;
  readonly streamId: string;
  readonly key: unknown;
  readonly actor: string;
  readonly reason: string;
}

/** Prints the discarded events of a version. */
export async function remoteDiscards(args: RemoteArguments, version: string | undefined): Promise<void> {
  if (version === undefined)
    throw new RefoldError('INVALID_CONFIG', 'With --remote, --discarded needs a version, such as cart_summary@2.');
  const query = `query Discards($version: ID!, $after: String) {
    discards(version: $version, first: 1000, after: $after) {
      items { position eventType streamId key actor reason at }
      next
    }
  }`;
  const api = openRemote(args.remote);
  const { items, hasMore } = await itemsOf(
    async (after) => (await api.query<{ discards: RemotePage<Discard> }>(query, { version, after })).discards,
    mostShown,
  );
  if (args.json) return console.log(JSON.stringify({ discards: items, hasMore }, null, 2));
  if (items.length === 0) return console.log(`${version} has nothing discarded.`);
  console.log(
    textTable(
      ['position', 'event', 'stream', 'row', 'by', 'reason'],
      items.map(({ position, eventType, streamId, key, actor, reason }) => [
        integer(BigInt(position)),
        eventType,
        streamId,
        key === null ? '?' : JSON.stringify(key),
        actor,
        reason,
      ]),
    ),
  );
  if (hasMore) console.log(`These are the first ${integer(mostShown)}.`);
}

export type LetterArguments = ActionArguments & { readonly version: string; readonly key: string | undefined };

/** Retries or discards the dead letters of a version or a reactor, all of them or those of one key. Exits with 1 if nothing was done. */
export async function remoteRedeliver(args: LetterArguments, what: 'retry' | 'discard'): Promise<void> {
  const api = openRemote(args.remote);
  const name = what === 'retry' ? 'retryDeadLetters' : 'discardDeadLetters';
  const chosen = args.key === undefined ? { filter: { of: args.version } } : { ids: await idsOf(api, args, args.key) };
  const total = { folded: 0, discarded: 0, left: 0, continues: false };
  for (let after: string | null = null; ; ) {
    const outcome = await runAction(api, args, { [name]: { ...chosen, ...(after === null ? {} : { after }) } });
    total.folded += outcome.folded ?? 0;
    total.discarded += outcome.discarded ?? 0;
    total.left += outcome.left ?? 0;
    total.continues ||= outcome.continues;
    if (!args.json) console.log(outcome.summary);
    after = outcome.next;
    if (after === null) break;
  }
  // A reactor's owner does it later, so its outcome has no figures.
  if (args.version.includes('@') && total.folded + total.discarded === 0 && !total.continues) process.exitCode = 1;
  if (args.json) console.log(JSON.stringify(total, null, 2));
}

/** Takes back discards of a version. */
export async function remoteRecall(args: LetterArguments): Promise<void> {
  const key = args.key === undefined ? {} : { key: typedValues(args.key) };
  await act(args, { recallDiscards: { version: args.version, ...key } });
}

async function lettersOf(api: RemoteApi, of: string | undefined, most: number) {
  const found = await itemsOf(async (after) => {
    const variables = { of, first: 1000, after };
    return (await api.query<{ deadLetters: RemotePage<RemoteLetter> }>(lettersQuery, variables)).deadLetters;
  }, most);
  warnOfStoresAway(found.storesAway);
  return found;
}

async function idsOf(api: RemoteApi, { version }: LetterArguments, key: string): Promise<readonly string[]> {
  const { items } = await lettersOf(api, version, Number.POSITIVE_INFINITY);
  // The key of a row is a list of values, that of a reactor a text.
  const textOf = (one: unknown) => JSON.stringify((Array.isArray(one) ? one : [one]).map(String));
  const of = (wanted: string) => items.filter((one) => textOf(one.key) === wanted).map(({ id }) => id);
  const found = of(textOf(typedValues(key)));
  const ids = found.length > 0 ? found : of(textOf(key));
  if (ids.length === 0) throw new RefoldError('INVALID_TRANSITION', `${version} has no dead letters of ${key}.`);
  return ids.slice(0, mostIds);
}
