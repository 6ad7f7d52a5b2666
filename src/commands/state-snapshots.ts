import { invalidDeclaration, RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { EventFamily } from '../events/event-family.ts';
import { fingerprint } from '../projections/declaration/fingerprint.ts';
import { changedByJson } from './changed-by-json.ts';

/** How states of a stream are kept, so that a long stream need not be folded from its beginning. */
export interface StateOptions<S = unknown> {
  /**
   * A state is kept when a command has folded at least so many events; the next one folds what came after. Each costs one small write
   * after the command was answered. Worth it for streams of hundreds of events.
   * @default none is kept
   */
  readonly snapshotEvery?: number;
  /**
   * Change it when code that `initial` or a handler *calls* changes what states come of the same events. The code of `initial`, of
   * the handlers, of `encode` and `decode` and of the family's upcasters is looked at by itself: a state that other code made is never read.
   */
  readonly codeVersion?: string | number;
  /** Makes JSON of a state that JSON would change, such as one with a `bigint`, a `Date` or a `Map`. Give both, or none. */
  readonly encode?: (state: S) => unknown;
  /** Makes the state of what `encode` gave. */
  readonly decode?: (json: never) => S;
}

/** The checked options of a state of which snapshots are kept. */
export interface StateSnapshots {
  readonly every: number;
  /** Of the code that makes the states. */
  readonly fingerprint: string;
  /** The state as JSON. @throws RefoldError `INVALID_STATE` for one that would not come back as it is. */
  encode(state: unknown): string;
  decode(json: unknown): unknown;
}

const known = ['snapshotEvery', 'codeVersion', 'encode', 'decode'];

/** @throws RefoldError `INVALID_DECLARATION` */
export function stateSnapshots(
  family: EventFamily,
  code: readonly unknown[],
  options: StateOptions,
): StateSnapshots | undefined {
  const subject = `defineState of ${family.name}`;
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw invalidDeclaration(subject, `unknown option '${name}'.${closest(name, known)}`);
  }
  const { snapshotEvery: every, codeVersion, encode, decode } = options;
  if ((encode === undefined) !== (decode === undefined))
    throw invalidDeclaration(subject, `'encode' and 'decode' belong together; give both, or none.`);
  if (every === undefined) return undefined;
  if (!Number.isSafeInteger(every) || every < 1)
    throw invalidDeclaration(subject, `'snapshotEvery' is a whole number from 1 on, found ${String(every)}.`);
  return Object.freeze({
    every,
    fingerprint: fingerprint([
      family.name,
      code.map(String),
      Object.entries(family.upcasters).map(([type, steps]) => [type, steps?.map(String)]),
      codeVersion === undefined ? null : String(codeVersion),
      encode?.toString(),
      decode?.toString(),
    ]),
    encode(state: unknown) {
      const value = encode ? encode(state) : state;
      const changed = changedByJson(value);
      if (changed) {
        throw new RefoldError(
          'INVALID_STATE',
          `${encode ? 'What encode gives of a' : 'A'} state of ${family.name} has ${changed}, which JSON would change, so no snapshot of it is kept. Keep another value in the state, or give defineState 'encode' and 'decode'.`,
          { family: family.name },
        );
      }
      const json = JSON.stringify(value);
      // A decode that loses something would have later commands decide on another state.
      if (encode && decode && JSON.stringify(encode(decode(JSON.parse(json) as never))) !== json) {
        throw new RefoldError(
          'INVALID_STATE',
          `'decode' of a state of ${family.name} gives a state that 'encode' makes other JSON of, so no snapshot of it is kept.`,
          { family: family.name },
        );
      }
      return json;
    },
    decode: (json: unknown) => (decode ? decode(json as never) : json), // what encode of this state gave
  } satisfies StateSnapshots);
}
