import { actionsOfReactor } from '../../runtime/actions/possible-actions.ts';
import { boundedCount, foundOrAway } from '../../runtime/inspection/application.ts';
import { healths } from '../../runtime/inspection/health.ts';
import { namesAway } from '../../runtime/inspection/overview.ts';
import { stallText } from '../../runtime/monitoring/stall-text.ts';
import type { QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type {
  QueryReactorArgs,
  QueryVersionArgs,
  QueryVersionsArgs,
  ReactorHistoryArgs,
} from '../schema/sdl.generated.ts';
import { auditPage } from './audit.ts';
import { cursor, isNumber, pageSize, placeAt } from './cursors.ts';

export const overviewQueries = {
  me: (_, _args, { caller }) => caller,
  overview: (_, _args, { services }) => services.overview.read(),
  versions: async (_, { search, health, first, after }: QueryVersionsArgs, { services }) => {
    const { versions, stores } = await services.overview.read();
    const matching = versions.filter((one) => one.id.includes(search ?? '') && (health?.includes(one.health) ?? true));
    const start = placeAt(after, isNumber) ?? 0;
    const end = start + pageSize(first, 100);
    const next = end < matching.length ? cursor(end) : null;
    return { items: matching.slice(start, end), next, storesAway: namesAway(stores) };
  },
  version: async (_, { id }: QueryVersionArgs, { services }) => {
    const { versions, stores } = await services.overview.read();
    return foundOrAway(
      versions.find((one) => one.id === id),
      id,
      namesAway(stores),
    );
  },
  reactors: async (_, _args, { services }) => (await services.overview.read()).reactors,
  reactor: async (_, { name }: QueryReactorArgs, { services }) =>
    (await services.overview.read()).reactors.find((one) => one.name === name),
} satisfies Partial<QueryResolvers>;

export const overviewTypes = {
  Caller: {
    rights: ({ rights }) => [...rights],
    process: (_, _args, { services }) => services.process,
  },
  Overview: {
    versionCount: ({ versions }) => versions.length,
    health: ({ versions }) =>
      healths.flatMap((health) => {
        const count = versions.filter((one) => one.health === health).length;
        return count === 0 ? [] : [{ health, count }];
      }),
  },
  Stall: {
    position: ({ tag }) => tag,
    query: ({ query }, _, { caller }) => (caller.rights.has('data') ? query : null),
    text: (stall, _, { caller }) => stallText(caller.rights.has('data') ? stall : { ...stall, query: null }),
  },
  ProcessorError: {},
  Reactor: {
    deadLetters: ({ deadLetters }) => boundedCount(deadLetters),
    waiting: ({ waiting }) => boundedCount(waiting),
    waitingEvents: ({ name }, _, { services }) => services.reactors.waiting(name),
    history: ({ name }, page: ReactorHistoryArgs, { services }) =>
      auditPage(services.application, { reactor: name }, page),
    actions: (one) => actionsOfReactor(one),
  },
  ReactorVersion: {
    number: ({ version }) => version,
    underWay: ({ underWay }) => boundedCount(underWay),
  },
  WaitingEvent: {
    eventType: ({ type }) => type,
    awaitedKey: ({ awaitedKey }, _, { caller }) => (caller.rights.has('data') ? awaitedKey : null),
  },
} satisfies Partial<TypeResolvers>;
