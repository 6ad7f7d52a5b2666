import { RefoldError } from '../../errors.ts';
import { globalPosition } from '../../events/global-position.ts';
import { rowKeyOf } from '../../projections/projection/given-key.ts';
import { keyText } from '../../projections/projection/projection.ts';
import { highestLetter, readLettersAt } from '../../store/browsing/browse-letters.ts';
import { stoppedAtId } from '../../store/processors/stopped-processors.ts';
import {
  discardDeadLetters,
  type Redelivery,
  recallDiscarded,
  retryDeadLetters,
} from '../dead-letters/dead-letters.ts';
import { awayText, boundedCount, countBound, dbOfVersion, declaredVersionOf } from '../inspection/application.ts';
import {
  type InspectedLetter,
  type LetterPage,
  type LetterPlace,
  letterId,
  letterSources,
  parseLetterId,
  readLetterPage,
} from '../inspection/letters.ts';
import { createReactorOperations } from '../reactors/reactor-operations.ts';
import type { TransitionReason } from '../versions/expect-version.ts';
import type { ActionDefinition, ActionDefinitions, ActionServices, DeadLettersInput, Done, Draft } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';

// Dead letters of one transaction, and of one run: what fits into the time of a request.
const atOnce = 200;
const inOneRun = 5000;

const mostIds = 1000;

/** The dead letters that are meant: those with these ids, or up to `limit` of those that match. */
async function chosen(
  services: ActionServices,
  { ids, filter, after }: DeadLettersInput,
  limit: number,
): Promise<LetterPage> {
  if ((ids === undefined) === (filter === undefined))
    throw new RefoldError('BAD_USER_INPUT', `Choose dead letters by 'ids', or all that match a 'filter'.`);
  if (filter) return readLetterPage(services, filter, limit, after ?? null);
  if (!ids || ids.length === 0 || ids.length > mostIds)
    throw new RefoldError('BAD_USER_INPUT', `'ids' names 1 to ${mostIds} dead letters, found ${ids?.length ?? 0}.`);
  const named = Map.groupBy(ids.map(parseLetterId), ({ of }) => of);
  const { found, away } = await letterSources(services);
  const letters: InspectedLetter[] = [];
  for (const source of found.filter(({ of }) => named.has(of))) {
    const numbers = (named.get(source.of) ?? []).map(({ number }) => number);
    letters.push(...(await readLettersAt(source.db, source, numbers)).map((letter) => ({ ...letter, source })));
  }
  return { letters, next: null, away };
}

/** Dead letters that are stored after the preview are not meant: the highest number of each version and reactor. */
type Bounds = Readonly<Record<string, string>>;

async function boundsOf(services: ActionServices, of: string | undefined): Promise<Bounds> {
  const bounds: Record<string, string> = {};
  for (const source of (await letterSources(services, of)).found) {
    const highest = await highestLetter(source.db, source);
    if (highest !== null) bounds[source.of] = highest.toString();
  }
  return bounds;
}

function isMeant({ source, number }: InspectedLetter, bounds: Bounds): boolean {
  const bound = bounds[source.of];
  return number === stoppedAtId || (bound !== undefined && number <= BigInt(bound));
}

async function previewOf(services: ActionServices, input: DeadLettersInput, what: 'retry' | 'discard'): Promise<Draft> {
  const { letters, next, away } = await chosen(services, input, countBound + 1);
  const count = boundedCount(letters.length);
  const undeclared = [
    ...new Set(letters.filter(({ source }) => !source.isReactor).map(({ source }) => source.of)),
  ].filter((of) => !services.config.projections.some(({ id }) => id === of));
  const ofs = [...new Set(letters.map(({ source }) => source.of))];
  const many = count.isExact && next === null ? String(count.value) : `${count.value} or more`;
  const failed = letters.filter(({ error }) => error !== null).length;
  return {
    of: ofs.length === 1 ? (ofs[0] ?? null) : null,
    summary:
      what === 'retry'
        ? `The dead letters of these rows are folded again in order, with the present code, until one of a row fails: ${many} are chosen.`
        : `The failed events among the ${many} chosen are left out of their rows for good, and what waited behind them is folded.`,
    details: [
      `${failed} of those that were counted failed, ${letters.length - failed} wait behind one.`,
      ...(letters.some(({ source }) => source.isReactor) ? ['The owner of a reactor does it, in the background.'] : []),
      ...(next !== null || letters.length > countBound
        ? [`One run visits up to ${inOneRun}. Run it again for the rest.`]
        : []),
    ],
    warnings: [
      ...(what === 'discard'
        ? ['Rows stay as if the events had not happened. A discard can be recalled for the next rebuild.']
        : []),
      ...(away.length > 0 ? [`${awayText(away)}: dead letters there are left.`] : []),
      ...undeclared.map((of) => `This process does not declare ${of}: its dead letters are left.`),
    ],
    refusal: letters.length === 0 && next === null ? noneText(away) : null,
    concerns: { value: count.value, isExact: count.isExact && next === null },
    // Of ids, these very ones. Of a filter, those that are stored now.
    basis: input.ids ? letters.map((letter) => [letterId(letter), letter.attempts]) : null,
    bound: JSON.stringify(await boundsOf(services, input.filter?.of)),
  };
}

function noneText(away: readonly string[]): string {
  const none = 'There are no such dead letters.';
  return away.length === 0 ? none : `${awayText(away)}. In the other stores: ${none}`;
}

async function redeliver(
  services: ActionServices,
  input: DeadLettersInput,
  step: TransitionReason,
  what: 'retry' | 'discard',
  bound: string | undefined,
): Promise<Done> {
  const bounds: Bounds = JSON.parse(bound ?? '{}');
  const total = { folded: 0, discarded: 0, left: 0 };
  let continues = false;
  const rows = new Set<string>();
  let next: LetterPlace | null = input.after ?? null;
  let visited = 0;
  do {
    const page: LetterPage = await chosen(services, { ...input, ...(next ? { after: next } : {}) }, atOnce);
    const within = page.letters.filter((letter) => isMeant(letter, bounds));
    // A retry takes all dead letters of a row, so each row is tried once.
    const meant = what === 'discard' ? within : within.filter((letter) => isNew(rows, rowOf(letter)));
    for (const [of, letters] of Map.groupBy(meant, ({ source }) => source.of)) {
      const result = await redeliverOf(services, of, letters, step, what);
      total.folded += result.folded;
      total.discarded += result.discarded;
      total.left += result.left;
      continues ||= result.continues ?? false;
    }
    visited += page.letters.length === 0 ? atOnce * 5 : page.letters.length; // an empty page has visited many
    const last = page.letters.at(-1);
    // Those behind the bound came after the preview.
    const isPast = last !== undefined && page.next?.of === last.source.of && !isMeant(last, bounds);
    next = isPast ? await skipSource(services, page.next) : page.next;
  } while (next !== null && visited < inOneRun);
  const verb = what === 'retry' ? 'folded or handled' : 'discarded';
  const number = what === 'retry' ? total.folded : total.discarded;
  return {
    summary: `${number} dead letters ${verb}, ${total.left} left.${continues ? ' A processor that had stopped continues.' : ''}${next ? ' There are more: run it again.' : ''}`,
    ...total,
    continues,
    next,
  };
}

/** A dead letter without a key is a row of its own. */
function rowOf(letter: InspectedLetter): string {
  const { source, key } = letter;
  return key === null ? letterId(letter) : JSON.stringify([source.of, key]);
}

function isNew(known: Set<string>, one: string): boolean {
  const before = known.size;
  return known.add(one).size > before;
}

/** The next version or reactor with dead letters. */
async function skipSource(services: ActionServices, place: LetterPlace | null): Promise<LetterPlace | null> {
  if (!place) return null;
  const { found: sources } = await letterSources(services);
  const following = sources[sources.findIndex(({ of }) => of === place.of) + 1];
  return following ? { of: following.of, after: -1n } : null;
}

async function redeliverOf(
  services: ActionServices,
  of: string,
  letters: readonly InspectedLetter[],
  step: TransitionReason,
  what: 'retry' | 'discard',
): Promise<Redelivery> {
  const { db, log, config } = services;
  const [first] = letters;
  const none = { folded: 0, discarded: 0, left: letters.length };
  if (first?.source.isReactor) {
    const positions = letters.map(({ position }) => globalPosition(position));
    const requested = await ignoreGone(() => createReactorOperations(db, log).redeliver(of, what, step, positions));
    return { ...none, left: requested ?? 0 };
  }
  const projection = config.projections.find(({ id }) => id === of);
  if (!projection) return none;
  const options = { db: first?.source.db ?? db, log, readSchema: config.database.readSchema, projection };
  const numbers = letters.map(({ number }) => number);
  const redelivered = await ignoreGone(() =>
    (what === 'retry' ? retryDeadLetters : discardDeadLetters)(options, step, numbers),
  );
  return redelivered ?? { folded: 0, discarded: 0, left: 0 };
}

/** A row that was folded with an earlier dead letter of it has none any more. */
async function ignoreGone<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RefoldError && error.fields.deadLetters === 0) return undefined;
    throw error;
  }
}

function letterAction(what: 'retry' | 'discard'): ActionDefinition<'retryDeadLetters' | 'discardDeadLetters'> {
  return {
    right: what === 'retry' ? 'retryDeadLetters' : 'discardDeadLetters',
    preview: (services, input) => previewOf(services, input, what),
    run: (services, input, step, bound) => redeliver(services, input, step, what, bound),
  };
}

export const letterActions: ActionDefinitions<'retryDeadLetters' | 'discardDeadLetters' | 'recallDiscards'> = {
  retryDeadLetters: letterAction('retry'),
  discardDeadLetters: letterAction('discard'),
  recallDiscards: {
    right: 'discardDeadLetters',
    async preview(services, { version: id, key }) {
      const { log, config } = services;
      const db = await dbOfVersion(services, id);
      const projection = declaredVersionOf(config, id);
      const text = key === undefined ? undefined : keyText(rowKeyOf(projection, key));
      const options = { db: rehearsalOf(db), log, readSchema: config.database.readSchema, projection };
      let recalled = 0;
      const refusal = await refusalOf(async () => {
        recalled = await recallDiscarded(options, { actor: 'preview', reason: 'preview' }, text);
      });
      return {
        of: id,
        summary: `The next rebuild of ${id} folds ${recalled} discarded events again. Its rows stay as they are until then.`,
        refusal: refusal?.message ?? null,
        concerns: { value: recalled, isExact: true },
        basis: recalled,
      };
    },
    async run(services, { version: id, key }, step) {
      const { log, config } = services;
      const db = await dbOfVersion(services, id);
      const projection = declaredVersionOf(config, id);
      const text = key === undefined ? undefined : keyText(rowKeyOf(projection, key));
      const recalled = await recallDiscarded(
        { db, log, readSchema: config.database.readSchema, projection },
        step,
        text,
      );
      return { summary: `${recalled} discarded events of ${id} are recalled for the next rebuild.`, version: id };
    },
  },
};
