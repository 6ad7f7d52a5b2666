import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { MeQuery, Right } from '../gql/graphql.ts';

export type Caller = MeQuery['me'];

export const CallerContext = createContext<Caller>({ name: '', rights: [], process: '' });

/** What the token may do. */
export function useRights(): ReadonlySet<Right> {
  return new Set(useContext(CallerContext).rights);
}
