import { useEffect } from 'preact/hooks';
import { MeDocument } from './gql/graphql.ts';
import { AuditPage } from './pages/audit.tsx';
import { ClientsPage } from './pages/clients.tsx';
import { DeadLettersPage } from './pages/dead-letters.tsx';
import { EventPage } from './pages/event.tsx';
import { LogPage } from './pages/log.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { ReactorPage } from './pages/reactor.tsx';
import { ReactorsPage } from './pages/reactors.tsx';
import { StepperPage } from './pages/stepper.tsx';
import { VersionPage } from './pages/version.tsx';
import { Problem } from './parts/problem.tsx';
import { Loading } from './parts/table.tsx';
import { type Route, useRoute } from './router.ts';
import { CallerContext } from './server/caller.ts';
import { followOverview } from './server/overview.ts';
import { session } from './server/session.ts';
import { useStore } from './server/store.ts';
import { useQuery } from './server/use-query.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

export function App() {
  const { token } = useStore(session);
  return token ? <SignedIn key={token} /> : <SignIn />;
}

function SignedIn() {
  const { data, error, reload } = useQuery(MeDocument, {});
  const route = useRoute();
  const isKnown = data !== undefined;
  useEffect(() => (isKnown ? followOverview() : undefined), [isKnown]);
  if (error) return <main class="alone">{<Problem error={error} retry={reload} />}</main>;
  if (!data) return <main class="alone">{<Loading />}</main>;
  return (
    <CallerContext.Provider value={data.me}>
      <Shell route={route}>{pageOf(route)}</Shell>
    </CallerContext.Provider>
  );
}

function pageOf({ path: [section, name, part], params }: Route) {
  switch (section) {
    case undefined:
      return <OverviewPage params={params} />;
    case 'versions':
      return name ? <VersionPage key={name} id={name} part={part ?? 'status'} /> : <OverviewPage params={params} />;
    case 'rows':
      return <StepperPage params={params} />;
    case 'dead-letters':
      return <DeadLettersPage params={params} />;
    case 'log':
      return name ? <EventPage key={name} position={name} /> : <LogPage params={params} />;
    case 'clients':
      return <ClientsPage params={params} />;
    case 'reactors':
      return name ? <ReactorPage key={name} name={name} /> : <ReactorsPage />;
    case 'audit':
      return <AuditPage params={params} />;
    default:
      return (
        <>
          <h1>No such page</h1>
          <p>
            <a href="#/">Go to the overview</a>
          </p>
        </>
      );
  }
}
