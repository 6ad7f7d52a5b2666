import { RefoldError } from '../../errors.ts';
import { globalPosition } from '../../events/global-position.ts';
import type { Action, ActionName } from '../../runtime/actions/action.ts';
import { reasonOf } from '../../thrown.ts';
import type { ActionInput, DeadLetterFilter } from '../schema/sdl.generated.ts';
import { isLetterPlace, placeAt } from './cursors.ts';

/** Without nulls, which GraphQL allows for every optional field. */
export function withoutNulls<T extends object>(given: T): { readonly [F in keyof T]: NonNullable<T[F]> } {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== null && value !== undefined),
  ) as never; // each field keeps its type
}

/** The action that an input names, with its input in the types of the runtime. @throws RefoldError `BAD_USER_INPUT` */
export function actionOf(given: ActionInput): Action {
  const [entry] = Object.entries(given).filter(([, input]) => input !== null && input !== undefined);
  if (!entry) throw new RefoldError('BAD_USER_INPUT', 'The input names no action.'); // the executor refuses it before
  const [name, input]: readonly [ActionName, object] = entry as [keyof ActionInput, object];
  const own: Record<string, unknown> = { ...withoutNulls(input) };
  return { name, input: { ...own, ...convertedOf(name, own) } } as unknown as Action; // the input type has the fields of the action
}

/** The fields that have another type in the runtime. */
function convertedOf(name: ActionName, own: Readonly<Record<string, unknown>>): Record<string, unknown> {
  switch (name) {
    case 'rebuild':
      return {
        fromSnapshot: own.fromSnapshot === undefined ? undefined : BigInt(String(own.fromSnapshot)),
        fromPosition: own.fromPosition === undefined ? undefined : positionOf(String(own.fromPosition)),
      };
    case 'restoreSnapshot':
    case 'dropSnapshot':
      return { snapshot: BigInt(String(own.snapshot)) };
    case 'retire':
      return { graceHours: hoursOf(Number(own.graceHours)) };
    case 'startCanary': {
      const header =
        own.header === undefined ? null : { name: String(own.header).toLowerCase(), value: own.headerValue ?? null };
      return { header, headerValue: undefined };
    }
    case 'retryDeadLetters':
    case 'discardDeadLetters': {
      const filter = own.filter === undefined ? {} : { filter: withoutNulls(own.filter as DeadLetterFilter) };
      return { ...filter, after: placeAt(own.after as string | undefined, isLetterPlace) ?? undefined };
    }
    case 'rewindReactor':
    case 'skipReactor':
    case 'cancelWaitingEvent':
      return { position: positionOf(String(own.position)) };
    default:
      return {};
  }
}

/** @throws RefoldError `BAD_USER_INPUT` */
export function positionOf(text: string) {
  try {
    return globalPosition(text);
  } catch (error) {
    throw new RefoldError('BAD_USER_INPUT', reasonOf(error));
  }
}

function hoursOf(hours: number): number {
  if (hours >= 0 && hours <= 24 * 365) return hours;
  throw new RefoldError('BAD_USER_INPUT', `'graceHours' is from 0 to ${24 * 365}, found ${hours}.`);
}
