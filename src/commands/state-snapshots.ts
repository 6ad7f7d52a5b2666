import { invalidDeclaration, RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import type { EventFamily } from '../events/event-family.ts';
import { fingerprint } from '../projections/declaration/fingerprint.ts';
import { jsonRoundTripChange } from './json-round-trip.ts';

/** Options for snapshots, which save folding a long stream from its first event. */
export interface StateOptions<S = unknown> {
  /**
   * A snapshot is stored after a command has folded at least this many events. The next command folds only the events after it. Each snapshot
   * costs one small write after the command is answered. It pays off for streams of hundreds of events.
   * @default no snapshots
   */
  readonly snapshotEvery?: number;
  /**
   * Change it when code that `initial` or a handler *calls* changes which state the same events lead to. Refold detects changes in the code of
   * `initial`, the handlers, `encode`, `decode` and the family's upcasters by itself. A snapshot of other code is never read.
   */
  readonly codeVersion?: string | number;
  /**
   * Converts a state to JSON. Needed if a JSON round trip would change the state, for example a `bigint`, a `Date` or a `Map`. Give both
   * functions, or neither.
   */
  readonly encode?: (state: S) => unknown;
  /** Converts the output of `encode` back to the state. */
  readonly decode?: (json: never) => S;
}

/** The checked options of a state with snapshots. */
export interface StateSnapshots {
  readonly every: number;
  /** A hash of the code that folds the state. */
  readonly fingerprint: string;
  /** Returns the state as JSON. @throws RefoldError `INVALID_STATE` if a round trip would change it. */
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
      // Code that does not know a former name leaves its events out.
      ...Object.values(family.typeNames).filter((names) => names.length > 1),
    ]),
    encode(state: unknown) {
      const value = encode ? encode(state) : state;
      const changed = jsonRoundTripChange(value);
      if (changed) {
        throw new RefoldError(
          'INVALID_STATE',
          `${encode ? 'What encode returns for a' : 'A'} state of ${family.name} has ${changed}, which JSON would change, so no snapshot of it is kept. Keep another value in the state, or give defineState 'encode' and 'decode'.`,
          { family: family.name },
        );
      }
      const json = JSON.stringify(value);
      // If decode loses something, later commands would decide on a different state.
      if (encode && decode && JSON.stringify(encode(decode(JSON.parse(json) as never))) !== json) {
        throw new RefoldError(
          'INVALID_STATE',
          `'decode' of a state of ${family.name} returns a state that 'encode' turns into other JSON, so no snapshot of it is kept.`,
          { family: family.name },
        );
      }
      return json;
    },
    decode: (json: unknown) => (decode ? decode(json as never) : json), // json is the output of this state's encode
  } satisfies StateSnapshots);
}
