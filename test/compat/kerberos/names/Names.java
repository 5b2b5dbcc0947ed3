import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.sasl.AuthorizeCallback;
import org.apache.zookeeper.server.auth.KerberosName;
import org.apache.zookeeper.server.auth.SaslServerCallbackHandler;

/**
 * Asks ZooKeeper's own classes which id a principal gets. Each line of the input is: rules, remove
 * host, remove realm, name, separated by tabs. Each line of the output that is not a log line is "= " and "id", "none" (no rule
 * applied), "bad rules" or "bad name", and the id.
 */
public class Names {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] field = line.split("\t", -1);
            System.setProperty("zookeeper.security.auth_to_local", field[0]);
            System.setProperty("zookeeper.kerberos.removeHostFromPrincipal", field[1]);
            System.setProperty("zookeeper.kerberos.removeRealmFromPrincipal", field[2]);
            out.print("= " + answer(field[3]) + "\n");
        }
        out.flush();
    }

    private static String answer(String name) {
        try {
            KerberosName.setConfiguration();
        } catch (Exception e) {
            return "bad rules\t";
        }
        AuthorizeCallback ac = new AuthorizeCallback(name, "fallback");
        try {
            Map<String, String> none = new HashMap<>();
            CallbackHandler handler = new SaslServerCallbackHandler(none);
            handler.handle(new Callback[] {ac});
        } catch (Exception e) {
            return "bad name\t";
        }
        if (ac.getAuthorizedID().equals("fallback")) {
            return "none\t";
        }
        return "id\t" + ac.getAuthorizedID();
    }
}
