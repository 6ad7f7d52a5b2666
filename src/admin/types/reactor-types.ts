import { actionsOfReactor } from '../../runtime/actions/possible-actions.ts';
import { boundedCount } from '../../runtime/inspection/application.ts';
import type { InspectedReactor } from '../../runtime/inspection/overview.ts';
import type { WaitingEvent as Waiting } from '../../store/reactors/reactor-instances.ts';
import { AuditPage } from './audit-types.ts';
import { builder } from './builder.ts';
import { ActionName, Count, ProcessorError } from './shared-types.ts';
import { historyOfReactor } from './version-details.ts';

export const ReactorVersion = builder.objectRef<InspectedReactor['versions'][number]>('ReactorVersion');
ReactorVersion.implement({
  fields: (t) => ({
    number: t.field({ type: 'Int', resolve: ({ version }) => version }),
    after: t.expose('after', { type: 'BigInt', description: 'It handles events after this position.' }),
    upTo: t.expose('upTo', { type: 'BigInt', nullable: true, description: 'And up to this one. Null for the newest.' }),
    underWay: t.field({ type: Count, resolve: ({ underWay }) => boundedCount(underWay) }),
    isNeeded: t.expose('isNeeded', { type: 'Boolean' }),
  }),
});

export const WaitingEvent = builder.objectRef<Waiting>('WaitingEvent');
WaitingEvent.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    eventType: t.field({ type: 'String', resolve: ({ type }) => type }),
    streamId: t.expose('streamId', { type: 'String' }),
    step: t.expose('step', { type: 'String' }),
    awaits: t.field({ type: ['String'], resolve: ({ awaits }) => [...awaits] }),
    awaitedKey: t.field({
      type: 'String',
      nullable: true,
      description: 'Null without the right `data`.',
      resolve: ({ awaitedKey }, _args, { caller }) => (caller.rights.has('data') ? awaitedKey : null),
    }),
    due: t.expose('due', { type: 'DateTime', nullable: true }),
    since: t.expose('since', { type: 'DateTime' }),
    isWoken: t.expose('isWoken', { type: 'Boolean' }),
  }),
});

export const Reactor = builder.objectRef<InspectedReactor>('Reactor');
Reactor.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'ID' }),
    state: t.expose('state', { type: 'String', description: '`running`, `idle`, `stopped` or `paused`.' }),
    isDeclared: t.expose('isDeclared', { type: 'Boolean' }),
    owner: t.expose('owner', { type: 'String', nullable: true }),
    position: t.expose('position', { type: 'BigInt' }),
    head: t.expose('head', { type: 'BigInt' }),
    lag: t.expose('lag', { type: 'BigInt' }),
    handled: t.expose('handled', { type: 'BigInt' }),
    skipped: t.expose('skipped', { type: 'BigInt' }),
    deadLetters: t.field({ type: Count, resolve: ({ deadLetters }) => boundedCount(deadLetters) }),
    waiting: t.field({ type: Count, resolve: ({ waiting }) => boundedCount(waiting) }),
    nextDue: t.expose('nextDue', {
      type: 'DateTime',
      nullable: true,
      description: 'When the next wait is over at the latest.',
    }),
    versions: t.field({ type: [ReactorVersion], resolve: ({ versions }) => [...versions] }),
    error: t.expose('error', { type: ProcessorError, nullable: true }),
    waitingEvents: t.field({
      type: [WaitingEvent],
      description: 'Events whose handlers wait, in log order. At most 1000.',
      resolve: ({ name }, _args, { services }) => services.reactors.waiting(name).then((all) => [...all]),
    }),
    history: t.field({
      type: AuditPage,
      description: 'What operators did with it, the latest first.',
      args: { first: t.arg({ type: 'Int', defaultValue: 50 }), after: t.arg({ type: 'String' }) },
      resolve: ({ name }, { first, after }, { services }) => historyOfReactor(services.application, name, first, after),
    }),
    actions: t.field({ type: [ActionName], resolve: (one) => actionsOfReactor(one) }),
  }),
});
