import { RefoldError } from '../../errors.ts';
import { globalPosition } from '../../events/global-position.ts';
import type { Action } from '../../runtime/actions/action.ts';
import type { LetterFilter } from '../../store/browsing/browse-letters.ts';
import { reasonOf } from '../../thrown.ts';
import { builder } from './builder.ts';
import { isLetterPlace, placeAt } from './cursors.ts';

export const DeadLetterFilter = builder.inputType('DeadLetterFilter', {
  fields: (t) => ({
    of: t.id({ description: 'Such as `cart_summary@2`, or the name of a reactor.' }),
    eventType: t.string(),
    streamId: t.string(),
    error: t.string({ description: 'The message of the error, whole or as a group has it.' }),
    stack: t.string({ description: 'The frames of the stack as a group has them.' }),
    failed: t.boolean({ description: 'Only those that failed, or only those that wait behind one.' }),
  }),
});

/** Without nulls, which GraphQL allows for every optional field. */
export function letterFilter(
  given: Readonly<Record<keyof LetterFilter | 'of', unknown>> | null | undefined,
): LetterFilter & { readonly of?: string } {
  return withoutNulls(given ?? {});
}

export function withoutNulls(given: object): Record<string, never> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== null && value !== undefined),
  ) as Record<string, never>; // each field keeps its type
}

const VersionInput = builder.inputType('VersionInput', { fields: (t) => ({ version: t.id({ required: true }) }) });
const ReactorInput = builder.inputType('ReactorInput', { fields: (t) => ({ reactor: t.id({ required: true }) }) });
const ReactorPositionInput = builder.inputType('ReactorPositionInput', {
  fields: (t) => ({ reactor: t.id({ required: true }), position: t.field({ type: 'BigInt', required: true }) }),
});
const SnapshotInput = builder.inputType('SnapshotInput', {
  fields: (t) => ({ version: t.id({ required: true }), snapshot: t.field({ type: 'BigInt', required: true }) }),
});
const allowBreaking = 'Also if clients of the version that answers would lose fields.';
const ActivateInput = builder.inputType('ActivateInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    along: t.idList({
      required: true,
      defaultValue: [],
      description:
        'Versions that become active with it, or none of them: those of related read models, in the same read store.',
    }),
    allowBreaking: t.boolean({ defaultValue: false, description: allowBreaking }),
  }),
});
const RollbackInput = builder.inputType('RollbackInput', {
  fields: (t) => ({
    projection: t.string({ required: true }),
    version: t.int({ description: 'Refused if another version is the highest active one.' }),
  }),
});
const RetireInput = builder.inputType('RetireInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    graceHours: t.float({ defaultValue: 24, description: 'Hours until its table is dropped.' }),
    force: t.boolean({
      defaultValue: false,
      description: 'Also if it is the version that answers.',
    }),
    allowLoss: t.boolean({
      defaultValue: false,
      description: 'Also if running processes lose it, or if a rule for unique values ends.',
    }),
  }),
});
const RebuildInput = builder.inputType('RebuildInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    inPlace: t.boolean({
      defaultValue: false,
      description: 'Rebuild the table itself; the version is not served meanwhile.',
    }),
    fromSnapshot: t.field({ type: 'BigInt', description: 'Start with the rows of this snapshot.' }),
    fromPosition: t.field({ type: 'BigInt', description: 'Start with the newest snapshot at or below this position.' }),
  }),
});
const StartCanaryInput = builder.inputType('StartCanaryInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    percent: t.float({ defaultValue: 0, description: 'Share of the clients, 0 to 100.' }),
    header: t.string({ description: 'Requests with this header.' }),
    headerValue: t.string({ description: 'And this value. Any value if absent.' }),
    allowBreaking: t.boolean({ defaultValue: false, description: allowBreaking }),
  }),
});
const EndCanaryInput = builder.inputType('EndCanaryInput', {
  fields: (t) => ({ projection: t.string({ required: true }) }),
});
const StartShadowInput = builder.inputType('StartShadowInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    oneOf: t.int({ required: true, description: 'Compare about one in this many queries.' }),
  }),
});
const DeadLettersInput = builder.inputType('DeadLettersInput', {
  description:
    'Either `ids`, or all that match `filter`. A retry folds the dead letters of a row in order, from the first one, whichever of them is named. A discard leaves out the failed ones that are named, and folds what waited behind them. A run visits a bounded number. If `Outcome.next` is not null, run the action again with it as `after`, for the rest.',
  fields: (t) => ({
    ids: t.idList({ description: 'At most 1000.' }),
    filter: t.field({ type: DeadLetterFilter }),
    after: t.string(),
  }),
});
const RecallInput = builder.inputType('RecallInput', {
  fields: (t) => ({
    version: t.id({ required: true }),
    key: t.field({ type: 'JSON', description: "The row's key as JSON. All rows if absent." }),
  }),
});
const ReactorVersionInput = builder.inputType('ReactorVersionInput', {
  fields: (t) => ({ reactor: t.id({ required: true }), version: t.int({ required: true }) }),
});

export const ActionInput = builder.inputType('ActionInput', {
  isOneOf: true,
  description: 'Exactly one action.',
  fields: (t) => ({
    activate: t.field({ type: ActivateInput }),
    rollback: t.field({ type: RollbackInput }),
    retire: t.field({ type: RetireInput }),
    rebuild: t.field({ type: RebuildInput }),
    cancelRebuild: t.field({ type: VersionInput }),
    acceptRebuild: t.field({ type: VersionInput }),
    pause: t.field({ type: VersionInput }),
    resume: t.field({ type: VersionInput }),
    takeSnapshot: t.field({ type: VersionInput }),
    restoreSnapshot: t.field({ type: SnapshotInput }),
    dropSnapshot: t.field({ type: SnapshotInput }),
    startCanary: t.field({ type: StartCanaryInput }),
    endCanary: t.field({ type: EndCanaryInput }),
    startShadow: t.field({ type: StartShadowInput }),
    stopShadow: t.field({ type: VersionInput }),
    retryDeadLetters: t.field({ type: DeadLettersInput }),
    discardDeadLetters: t.field({ type: DeadLettersInput }),
    recallDiscards: t.field({ type: RecallInput }),
    pauseReactor: t.field({ type: ReactorInput }),
    resumeReactor: t.field({ type: ReactorInput }),
    rewindReactor: t.field({ type: ReactorPositionInput }),
    skipReactor: t.field({ type: ReactorPositionInput }),
    cancelWaitingEvent: t.field({ type: ReactorPositionInput }),
    withdrawReactorVersion: t.field({ type: ReactorVersionInput }),
    forgetReactor: t.field({ type: ReactorInput }),
  }),
});

type Given = typeof ActionInput.$inferInput;

/** The action that an input names, with its input in the types of the runtime. @throws RefoldError `BAD_USER_INPUT` */
export function actionOf(given: Given): Action {
  const [entry] = Object.entries(given).filter(([, input]) => input !== null && input !== undefined);
  if (!entry) throw new RefoldError('BAD_USER_INPUT', 'The input names no action.'); // the executor refuses it before
  const [name, input] = entry;
  const own: Record<string, unknown> = withoutNulls(input as object);
  return { name, input: { ...own, ...convertedOf(name, own) } } as unknown as Action; // the input type has the fields of the action
}

/** The fields that have another type in the runtime. */
function convertedOf(name: string, own: Readonly<Record<string, unknown>>): Record<string, unknown> {
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
      const filter =
        own.filter === undefined
          ? {}
          : { filter: letterFilter(own.filter as typeof DeadLetterFilter.$inferInput as never) };
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
