import { dbOfVersion, versionName } from '../../runtime/inspection/application.ts';
import { readLetter, readLetterGroups, readLetterPage } from '../../runtime/inspection/letters.ts';
import { readDiscardPage } from '../../store/browsing/browse-discards.ts';
import { DeadLetterFilter, letterFilter } from '../types/action-inputs.ts';
import { builder } from '../types/builder.ts';
import { cursor, isDiscardPlace, isLetterPlace, pageSize, placeAt } from '../types/cursors.ts';
import { DeadLetter, DeadLetterGroups, DeadLetterPage, DiscardPage } from '../types/letter-types.ts';
import { DeadLetterGrouping } from '../types/shared-types.ts';

builder.queryFields((t) => ({
  deadLetters: t.field({
    type: DeadLetterPage,
    description: 'Dead letters of the versions and reactors in use, in the order in which they were stored.',
    args: { filter: t.arg({ type: DeadLetterFilter }), first: t.arg.int({ defaultValue: 50 }), after: t.arg.string() },
    resolve: async (_, { filter, first, after }, { services }) => {
      const { application } = services;
      const size = pageSize(first, 50);
      const place = placeAt(after, isLetterPlace);
      const { letters, next, away } = await readLetterPage(application, letterFilter(filter as never), size, place);
      return { items: [...letters], next: next && cursor(next), away };
    },
  }),
  deadLetter: t.field({
    type: DeadLetter,
    nullable: true,
    description: 'One dead letter. Null if it is gone.',
    args: { id: t.arg.id({ required: true }) },
    resolve: (_, { id }, { services }) => readLetter(services.application, id),
  }),
  deadLetterGroups: t.field({
    type: DeadLetterGroups,
    description:
      'Dead letters, counted by error, stack, event and stream. Visits a bounded number; pass `next` as `after` to count on.',
    args: {
      by: t.arg({ type: [DeadLetterGrouping], required: true }),
      filter: t.arg({ type: DeadLetterFilter }),
      after: t.arg.string(),
    },
    resolve: async (_, { by, filter, after }, { services }) => {
      const chosen = letterFilter(filter as never);
      const found = await readLetterGroups(services.application, chosen, by, placeAt(after, isLetterPlace));
      const { groups, visited, next, away } = found;
      return { items: [...groups], visited, next: next && cursor(next), away };
    },
  }),
  discards: t.field({
    type: DiscardPage,
    description: 'Events that an operator discarded, in log order.',
    args: { version: t.arg.id({ required: true }), first: t.arg.int({ defaultValue: 50 }), after: t.arg.string() },
    resolve: async (_, { version, first, after }, { services }) => {
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
  }),
}));
