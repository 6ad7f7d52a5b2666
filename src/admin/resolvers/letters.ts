import { dbOfVersion, versionName } from '../../runtime/inspection/application.ts';
import {
  blockedBehind,
  letterId,
  readLetter,
  readLetterGroups,
  readLetterPage,
} from '../../runtime/inspection/letters.ts';
import { readDiscardPage } from '../../store/browsing/browse-discards.ts';
import type { AdminContext } from '../schema/context.ts';
import type { QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type {
  QueryDeadLetterArgs,
  QueryDeadLetterGroupsArgs,
  QueryDeadLettersArgs,
  QueryDiscardsArgs,
} from '../schema/sdl.generated.ts';
import { withoutNulls } from './action-inputs.ts';
import { cursor, isDiscardPlace, isLetterPlace, pageSize, placeAt } from './cursors.ts';

export const letterQueries = {
  deadLetters: async (_, { filter, first, after }: QueryDeadLettersArgs, { services }) => {
    const size = pageSize(first, 50);
    const chosen = withoutNulls(filter ?? {});
    const place = placeAt(after, isLetterPlace);
    const { letters, next, away } = await readLetterPage(services.application, chosen, size, place);
    return { items: letters, next: next && cursor(next), storesAway: away };
  },
  deadLetter: (_, { id }: QueryDeadLetterArgs, { services }) => readLetter(services.application, id),
  deadLetterGroups: async (_, { by, filter, after }: QueryDeadLetterGroupsArgs, { services }) => {
    const chosen = withoutNulls(filter ?? {});
    const found = await readLetterGroups(services.application, chosen, by, placeAt(after, isLetterPlace));
    const { groups, visited, next, away } = found;
    return { items: groups, visited, next: next && cursor(next), storesAway: away };
  },
  discards: async (_, { version, first, after }: QueryDiscardsArgs, { services }) => {
    const limit = pageSize(first, 50);
    const place = placeAt(after, isDiscardPlace)?.key;
    const items = await readDiscardPage(await dbOfVersion(services.application, version), {
      ...versionName(version),
      after: place ?? null,
      limit,
    });
    const last = items.at(-1);
    const next = last && items.length === limit ? cursor({ key: [last.position, JSON.stringify(last.key)] }) : null;
    return { items, next };
  },
} satisfies Partial<QueryResolvers>;

/** Whether a caller may see the keys and the values of a version. */
function seesKeysOf(of: string, { caller, services }: AdminContext): boolean {
  return caller.rights.has('data') || !services.hidesKeys(of);
}

export const letterTypes = {
  LetterError: {},
  DeadLetter: {
    id: (letter) => letterId(letter),
    of: ({ source }) => source.of,
    isReactor: ({ source }) => source.isReactor,
    key: ({ key, source }, _, context) => (seesKeysOf(source.of, context) ? key : null),
    takenBy: (letter, _, context) => (seesKeysOf(letter.source.of, context) ? context.takenBy.load(letter) : null),
    event: ({ position }, _, { events }) => events.load(position),
    blocked: (letter) => blockedBehind(letter),
  },
  Discard: {
    key: ({ key }, _, { caller }) => (caller.rights.has('data') ? key : null),
  },
} satisfies Partial<TypeResolvers>;
