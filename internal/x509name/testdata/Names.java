// Prints the name of each subject, which it reads as hexadecimal DER, one per line: the name's UTF-8
// in hexadecimal, or "-" if Java refuses the subject. Run by the test of package x509name with -update.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;

public class Names {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            try {
                String name = new X500Principal(HexFormat.of().parseHex(line)).getName();
                System.out.println(HexFormat.of().formatHex(name.getBytes(StandardCharsets.UTF_8)));
            } catch (IllegalArgumentException e) {
                System.out.println("-");
            }
        }
    }
}
