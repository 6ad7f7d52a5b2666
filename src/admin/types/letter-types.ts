import { blockedBehind, type InspectedLetter, type LetterGroups, letterId } from '../../runtime/inspection/letters.ts';
import type { BrowsedDiscard } from '../../store/browsing/browse-discards.ts';
import { builder } from './builder.ts';
import { LogEvent } from './log-types.ts';
import { Count, storesAway } from './shared-types.ts';

export const LetterError = builder.objectRef<{ readonly message: string; readonly stack?: string | undefined }>(
  'LetterError',
);
LetterError.implement({
  fields: (t) => ({
    message: t.expose('message', { type: 'String' }),
    stack: t.field({ type: 'String', nullable: true, resolve: ({ stack }) => stack ?? null }),
  }),
});

export const DeadLetter = builder.objectRef<InspectedLetter>('DeadLetter');
DeadLetter.implement({
  fields: (t) => ({
    id: t.field({ type: 'ID', description: 'Opaque; names it in actions.', resolve: (letter) => letterId(letter) }),
    of: t.field({
      type: 'ID',
      description: 'The version or the reactor, such as `cart_summary@2`.',
      resolve: ({ source }) => source.of,
    }),
    isReactor: t.field({ type: 'Boolean', resolve: ({ source }) => source.isReactor }),
    position: t.expose('position', { type: 'BigInt' }),
    eventType: t.expose('eventType', { type: 'String' }),
    streamId: t.expose('streamId', { type: 'String' }),
    key: t.field({
      type: 'JSON',
      nullable: true,
      description:
        "The row's key, or the key by which a reactor orders its events; as JSON. Null if it is not known, or without the right `data` if it is hidden.",
      resolve: ({ key, source }, _args, { caller, services }) =>
        caller.rights.has('data') || !services.hidesKeys(source.of) ? key : null,
    }),
    error: t.expose('error', {
      type: LetterError,
      nullable: true,
      description: 'Null if it only waits behind an earlier one.',
    }),
    takenBy: t.field({
      type: ['JSON'],
      nullable: true,
      description:
        'The keys of the rows that have the unique values which it claims, as they are now. Null if they are not known, or without the right `data` if they are hidden.',
      resolve: (letter, _args, { caller, services, takenBy }) =>
        caller.rights.has('data') || !services.hidesKeys(letter.source.of) ? takenBy.load(letter) : null,
    }),
    attempts: t.expose('attempts', { type: 'Int' }),
    at: t.expose('at', { type: 'DateTime' }),
    requested: t.expose('requested', {
      type: 'String',
      nullable: true,
      description: "`retry` or `discard`: what a reactor's owner was asked to do and has not done.",
    }),
    event: t.field({
      type: LogEvent,
      nullable: true,
      description: 'The event. Null if the log no longer has it.',
      resolve: ({ position }, _args, { events }) => events.load(position),
    }),
    blocked: t.field({
      type: Count,
      description: 'How many later dead letters wait behind it.',
      resolve: (letter) => blockedBehind(letter),
    }),
  }),
});

export const DeadLetterPage = builder.objectRef<{
  readonly items: InspectedLetter[];
  readonly next: string | null;
  readonly away: readonly string[];
}>('DeadLetterPage');
DeadLetterPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [DeadLetter] }),
    next: t.expose('next', { type: 'String', nullable: true }),
    storesAway: t.field({ type: ['String'], description: storesAway, resolve: ({ away }) => [...away] }),
  }),
});

export const DeadLetterGroup = builder.objectRef<LetterGroups['groups'][number]>('DeadLetterGroup');
DeadLetterGroup.implement({
  fields: (t) => ({
    error: t.expose('error', {
      type: 'String',
      nullable: true,
      description: 'The message, without the position and the stream of the event. Only what `by` names is not null.',
    }),
    stack: t.expose('stack', { type: 'String', nullable: true, description: 'The frames of the stack.' }),
    eventType: t.expose('eventType', { type: 'String', nullable: true }),
    streamId: t.expose('streamId', { type: 'String', nullable: true }),
    of: t.expose('of', { type: 'ID', nullable: true }),
    count: t.expose('count', { type: 'Int' }),
    waiting: t.expose('waiting', { type: 'Int', description: 'Of these, those that wait behind another.' }),
    firstPosition: t.expose('firstPosition', { type: 'BigInt' }),
    lastAt: t.expose('lastAt', { type: 'DateTime' }),
  }),
});

export const DeadLetterGroups = builder.objectRef<{
  readonly items: LetterGroups['groups'][number][];
  readonly visited: number;
  readonly next: string | null;
  readonly away: readonly string[];
}>('DeadLetterGroups');
DeadLetterGroups.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [DeadLetterGroup], description: 'The largest first.' }),
    visited: t.expose('visited', { type: 'Int', description: 'How many dead letters were visited.' }),
    next: t.expose('next', {
      type: 'String',
      nullable: true,
      description: '`after` to count on; null if all were visited.',
    }),
    storesAway: t.field({ type: ['String'], description: storesAway, resolve: ({ away }) => [...away] }),
  }),
});

export const Discard = builder.objectRef<BrowsedDiscard>('Discard');
Discard.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    eventType: t.expose('eventType', { type: 'String' }),
    streamId: t.expose('streamId', { type: 'String' }),
    key: t.field({
      type: 'JSON',
      nullable: true,
      resolve: ({ key }, _args, { caller }) => (caller.rights.has('data') ? key : null),
    }),
    actor: t.expose('actor', { type: 'String' }),
    reason: t.expose('reason', { type: 'String' }),
    at: t.expose('at', { type: 'DateTime' }),
  }),
});

export const DiscardPage = builder.objectRef<{ readonly items: BrowsedDiscard[]; readonly next: string | null }>(
  'DiscardPage',
);
DiscardPage.implement({
  fields: (t) => ({
    items: t.expose('items', { type: [Discard] }),
    next: t.expose('next', { type: 'String', nullable: true }),
  }),
});
