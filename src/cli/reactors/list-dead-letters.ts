import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { itemsOf, type OperatorApi } from '../api/operator-api.ts';
import { integer, json } from '../shared/format.ts';
import { takenByText } from '../shared/letter-texts.ts';
import { textTable } from '../shared/text-table.ts';

interface Letter {
  readonly id: string;
  readonly of: string;
  readonly position: string;
  readonly eventType: string;
  readonly streamId: string;
  readonly key: unknown;
  readonly attempts: number;
  readonly requested: string | null;
  readonly error: { readonly message: string; readonly stack: string | null } | null;
  readonly takenBy: readonly unknown[] | null;
}

const lettersQuery = `query Letters($of: ID, $after: String) {
  deadLetters(filter: { of: $of }, first: 1000, after: $after) {
    items { id of position eventType streamId key attempts requested at error { message stack } takenBy }
    next
    storesAway
  }
}`;

interface ListArguments {
  /** A version or a reactor; all of them if absent. */
  readonly version?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Prints dead letters of a version, of a reactor, or of all. */
export async function printLetters(api: OperatorApi, args: ListArguments, limit: number): Promise<void> {
  const { version: of } = args;
  const { items, hasMore } = await itemsOf<Letter>(api, lettersQuery, { of }, limit);
  if (of !== undefined && items.length === 0) await expectKnown(api, of);
  if (args.json) return console.log(json({ letters: items, hasMore }));
  if (items.length === 0) return console.log(of ? `${of} has no dead letters.` : 'There are no dead letters.');
  console.log(
    textTable(
      [...(of === undefined ? ['of'] : []), 'position', 'event', 'stream', 'row or key', 'attempts', 'error'],
      items.map((one) => [
        ...(of === undefined ? [one.of] : []),
        integer(BigInt(one.position)),
        one.eventType,
        one.streamId,
        one.key === null ? '?' : typeof one.key === 'string' ? one.key : JSON.stringify(one.key),
        integer(one.attempts),
        `${one.error?.message ?? '(waits behind an earlier one)'}${takenByText(one.takenBy)}`,
      ]),
    ),
  );
  if (hasMore) console.log(`These are the first ${integer(limit)}; --limit shows more.`);
}

export async function allLetters(api: OperatorApi, of: string): Promise<readonly Letter[]> {
  return (await itemsOf<Letter>(api, lettersQuery, { of })).items;
}

/** @throws RefoldError `INVALID_CONFIG` if there is no such version or reactor; most likely the number of the version is missing */
export async function expectKnown(api: OperatorApi, of: string): Promise<void> {
  const { reactors } = await api.query<{ reactors: readonly { readonly name: string }[] }>('{ reactors { name } }');
  const ids = await versionIds(api);
  const known = [...reactors.map(({ name }) => name), ...ids];
  if (known.includes(of)) return;
  if (of.includes('@')) throw new RefoldError('INVALID_CONFIG', `There is no version '${of}'.${closest(of, ids)}`);
  const own = ids.filter((id) => id.startsWith(`${of}@`)).map((id) => `'${id}'`);
  const wayOut =
    own.length > 0
      ? ` It is a projection; name a version of it: ${own.join(' or ')}.`
      : `${closest(of, known)} A version is written like cart_summary@2.`;
  throw new RefoldError('INVALID_CONFIG', `There is no reactor '${of}'.${wayOut}`);
}

async function versionIds(api: OperatorApi): Promise<readonly string[]> {
  const query =
    'query Versions($after: String) { versions(first: 1000, after: $after) { items { id } next storesAway } }';
  return (await itemsOf<{ readonly id: string }>(api, query)).items.map(({ id }) => id);
}

interface Discard {
  readonly position: string;
  readonly eventType: string;
  readonly streamId: string;
  readonly key: unknown;
  readonly actor: string;
  readonly reason: string;
}

const discardsQuery = `query Discards($version: ID!, $after: String) {
  discards(version: $version, first: 1000, after: $after) {
    items { position eventType streamId key actor reason at }
    next
  }
}`;

/** Prints the discarded events of a version, or of all. */
export async function printDiscards(api: OperatorApi, args: ListArguments, limit: number): Promise<void> {
  const { version } = args;
  if (version !== undefined && !version.includes('@'))
    throw new RefoldError(
      'INVALID_CONFIG',
      `What a reactor discards is not kept: --discarded is for versions, such as cart_summary@2. 'refold reactor history ${version}' shows who discarded letters, and when.`,
    );
  const discards: (Discard & { readonly of: string })[] = [];
  let hasMore = false;
  for (const of of version === undefined ? await versionIds(api) : [version]) {
    const found = await itemsOf<Discard>(api, discardsQuery, { version: of }, limit - discards.length);
    discards.push(...found.items.map((one) => ({ of, ...one })));
    hasMore ||= found.hasMore;
  }
  if (args.json) return console.log(json({ discards, hasMore }));
  if (discards.length === 0)
    return console.log(version ? `${version} has nothing discarded.` : 'Nothing is discarded.');
  console.log(
    textTable(
      [...(version ? [] : ['of']), 'position', 'event', 'stream', 'row', 'by', 'reason'],
      discards.map(({ of, position, eventType, streamId, key, actor, reason }) => [
        ...(version ? [] : [of]),
        integer(BigInt(position)),
        eventType,
        streamId,
        key === null ? '?' : JSON.stringify(key),
        actor,
        reason,
      ]),
    ),
  );
  if (hasMore) console.log(`These are the first ${integer(limit)}; --limit shows more.`);
}
