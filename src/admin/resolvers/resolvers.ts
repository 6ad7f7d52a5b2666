import type {
  MutationResolvers,
  QueryResolvers,
  SubscriptionResolvers,
  TypeResolvers,
} from '../schema/resolver-types.ts';
import { actionQueries, actionTypes, mutations } from './actions.ts';
import { auditQueries, auditTypes } from './audit.ts';
import { clientQueries, clientTypes } from './clients.ts';
import { letterQueries, letterTypes } from './letters.ts';
import { logQueries, logTypes } from './log.ts';
import { overviewQueries, overviewTypes } from './overview.ts';
import { subscriptions } from './subscriptions.ts';
import { versionTypes } from './version.ts';

interface Resolvers extends TypeResolvers {
  readonly Query: QueryResolvers;
  readonly Mutation: MutationResolvers;
  readonly Subscription: SubscriptionResolvers;
}

/** What answers the fields of the SDL. A field without a resolver is the property of that name. */
export const resolvers: Resolvers = {
  Query: {
    ...overviewQueries,
    ...actionQueries,
    ...auditQueries,
    ...letterQueries,
    ...logQueries,
    ...clientQueries,
  },
  Mutation: mutations,
  Subscription: subscriptions,
  ...overviewTypes,
  ...versionTypes,
  ...actionTypes,
  ...auditTypes,
  ...letterTypes,
  ...logTypes,
  ...clientTypes,
};
