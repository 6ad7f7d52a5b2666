import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type ListedLetter, listDeadLetters } from '../../runtime/dead-letters/dead-letters.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readAllDeadLetters } from '../../store/processors/dead-letters.ts';
import { type Discard, listDiscards } from '../../store/processors/discards.ts';
import { readStoppedAt } from '../../store/processors/stopped-processors.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { integer, json } from '../shared/format.ts';
import { takenByText } from '../shared/letter-texts.ts';
import type { Operation } from '../shared/open-operation.ts';
import { listOfStores } from '../shared/store-texts.ts';
import { textTable } from '../shared/text-table.ts';

export interface ListDeadLettersArguments {
  /** A version or a reactor; all versions and all reactors if absent. */
  readonly version?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Prints the dead letters of a version, of a reactor, or of all. */
export async function listLetters(config: Config, operation: Operation, args: ListDeadLettersArguments): Promise<void> {
  const letters = await lettersOf(config, operation, args.version);
  if (args.json)
    return console.log(json(args.version === undefined ? letters : letters.map(({ of, ...rest }) => rest)));
  if (letters.length === 0)
    return console.log(args.version ? `${args.version} has no dead letters.` : 'There are no dead letters.');
  const { version } = args;
  const named = version === undefined;
  const row = named ? 'row or key' : isReactor(version) ? 'key' : 'row';
  console.log(
    textTable(
      [...(named ? ['of'] : []), 'position', 'event', 'stream', row, 'attempts', 'error'],
      letters.map(({ of, position, type, streamId, key, attempts, error, takenBy }) => [
        ...(named ? [of] : []),
        integer(position),
        type,
        streamId,
        key === null ? '?' : typeof key === 'string' ? key : JSON.stringify(key),
        String(attempts),
        `${error?.message ?? '(waits behind an earlier one)'}${takenByText(takenBy)}`,
      ]),
    ),
  );
}

/** Prints the discarded events of a version, or of all. */
export async function listDiscarded(
  config: Config,
  { stores }: Operation,
  args: ListDeadLettersArguments,
): Promise<void> {
  if (args.version !== undefined && isReactor(args.version))
    throw new RefoldError(
      'INVALID_CONFIG',
      `What a reactor discards is not kept: --discarded is for versions, such as cart_summary@2. 'refold reactor history ${args.version}' shows who discarded letters, and when.`,
    );
  const version = args.version === undefined ? undefined : declaredVersion(config, args.version);
  const discarded = await listOfStores(stores, ({ db }) => listDiscards(db, version?.name, version?.version));
  if (args.json) console.log(json(version ? discarded.map(({ of, ...rest }) => rest) : discarded));
  else console.log(discardedToText(args.version, discarded));
}

/** Whether it is the name of a reactor; a version has an '@'. */
export function isReactor(name: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(name);
}

/** @throws RefoldError `INVALID_CONFIG` if there is no such reactor; most likely the version number is missing */
export async function expectReactor(config: Config, { reactors }: Operation, name: string): Promise<void> {
  const known = [...config.reactors, ...(await reactors.status())].map((one) => one.name);
  if (known.includes(name)) return;
  const versions = config.projections.filter((one) => one.name === name).map(({ id }) => `'${id}'`);
  const wayOut =
    versions.length > 0
      ? ` It is a projection; name a version of it: ${versions.join(' or ')}.`
      : `${closest(name, [...known, ...config.projections.map(({ id }) => id)])} A version is written like cart_summary@2.`;
  throw new RefoldError('INVALID_CONFIG', `There is no reactor '${name}'.${wayOut}`);
}

async function lettersOf(
  config: Config,
  operation: Operation,
  of: string | undefined,
): Promise<readonly (Omit<ListedLetter, 'id' | 'key'> & { readonly of: string; readonly key: unknown })[]> {
  const { stores, dbOf, log, reactors } = operation;
  if (of === undefined) {
    const names = (await reactors.status()).filter(({ deadLetters }) => deadLetters > 0).map(({ name }) => name);
    const ofReactors = await Promise.all(names.map((name) => lettersOfReactor(operation, name)));
    const ofStore = async (db: Database) => [...(await readAllDeadLetters(db)), ...(await readStoppedAt(db))];
    return [...(await listOfStores(stores, ({ db }) => ofStore(db))), ...ofReactors.flat()];
  }
  if (isReactor(of)) {
    await expectReactor(config, operation, of);
    return lettersOfReactor(operation, of);
  }
  const { readSchema } = config.database;
  const projection = declaredVersion(config, of);
  const letters = await listDeadLetters({
    db: await dbOf(projection.name, projection.version),
    log,
    readSchema,
    projection,
  });
  return letters.map((letter) => ({ of, ...letter }));
}

async function lettersOfReactor({ reactors }: Operation, name: string) {
  return (await reactors.deadLetters(name)).map((letter) => ({ of: name, ...letter }));
}

function discardedToText(version: string | undefined, discarded: readonly Discard[]): string {
  if (discarded.length === 0) return version ? `${version} has nothing discarded.` : 'Nothing is discarded.';
  return textTable(
    [...(version ? [] : ['of']), 'position', 'event', 'stream', 'row', 'by', 'reason'],
    discarded.map((one) => [
      ...(version ? [] : [one.of]),
      integer(one.position),
      one.type,
      one.streamId,
      one.key ? JSON.stringify(one.key) : '?',
      one.actor,
      one.reason,
    ]),
  );
}
